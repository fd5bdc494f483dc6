package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var units = []string{"stint-migrate.service", "stint-engine@.service", "stint-dashboard.service"} // in the order in which they start

// settingsOf reads a unit: the values of each key of its services, which may be there several times.
func settingsOf(text string) map[string][]string {
	all, section := map[string][]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		key, value, ok := strings.Cut(line, "=")
		switch {
		case strings.HasPrefix(line, "["):
			section = line
		case ok && section == "[Service]" && line[0] != '#':
			all[key] = append(all[key], value)
		}
	}
	return all
}

func TestTheUnitsOfSystemdStartWhatTheySay(t *testing.T) {
	t.Parallel()
	s := newSite(t, migrated.New(t))
	for _, name := range units {
		text := strings.NewReplacer("%i", "mail", "%H", "host", "${CREDENTIALS_DIRECTORY}", s.dir).Replace(s.replace.Replace(file(t, "systemd/"+name)))
		set := settingsOf(text)
		credential, path, _ := strings.Cut(set["LoadCredential"][0], ":")
		if !strings.HasPrefix(path, s.dir) {
			t.Errorf("%s loads its settings from %s", name, path)
		}
		s.settings(t, credential)
		words := strings.Fields(set["ExecStart"][0])
		p := program{args: words[1:], env: map[string]string{}, once: set["Type"][0] == "oneshot"}
		if words[0] != stint {
			t.Errorf("%s starts %s", name, words[0])
		}
		for _, line := range set["Environment"] {
			for pair := range strings.FieldsSeq(line) {
				key, value, _ := strings.Cut(pair, "=")
				p.env[key] = value
			}
		}
		if !p.once {
			p.kill = duration(set["TimeoutStopSec"][0])
			address := p.env["STINT_HEALTH"] + p.env["STINT_DASHBOARD"] // an engine has one, and a dashboard the other
			p.asks = [][]string{{"health", "--ready", "--health", address}}
		}
		t.Run(name, p.run)
	}
}

func TestSystemdKnowsWhatTheUnitsSay(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("there is no systemd-analyze: make systemd")
	}
	dir := t.TempDir()
	var paths []string
	for _, name := range units {
		path := filepath.Join(dir, strings.Replace(name, "@.", "@mail.", 1))
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(file(t, "systemd/"+name), "/usr/local/bin/stint", stint)), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	if out, err := exec.Command("systemd-analyze", append([]string{"verify", "--recursive-errors=no"}, paths...)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	for _, path := range paths { // 1.2 in systemd's own measure, from 0 to 10
		if out, err := exec.Command("systemd-analyze", "security", "--offline=yes", "--threshold=15", path).CombinedOutput(); err != nil {
			t.Errorf("systemd-analyze security: %v\n%s", err, out)
		}
	}
}
