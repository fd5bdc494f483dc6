package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// While an engine works, a real Prometheus has an answer to every query of the
// dashboard, and can evaluate every rule. What fires is that jobs fail, which they do.
func TestARealServerAnswersEveryQuery(t *testing.T) {
	program := installed(t, "prometheus")
	figures := httptest.NewServer(promhttp.HandlerFor(watched(t), promhttp.HandlerOpts{}))
	t.Cleanup(figures.Close)
	p := scrape(t, program, figures.Listener.Addr().String())
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			p.until(t, chosen(target.Expr)) // figures that take long to find are missing now and then on a busy machine
		}
	}
	p.until(t, `ALERTS{alertname="StintJobsFail", alertstate="firing"}`)
	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError, State string }
		}
	}
	if err := p.ask("rules", nil, &rules); err != nil {
		t.Fatal(err)
	}
	if len(rules.Groups) != 1 || len(rules.Groups[0].Rules) != len(readRules(t)) {
		t.Fatalf("the server has the rules %+v", rules)
	}
	for _, r := range rules.Groups[0].Rules {
		if r.Health != "ok" || r.State == "firing" && r.Name != "StintJobsFail" {
			t.Errorf("%+v", r)
		}
	}
}

var variableOfGrafana = regexp.MustCompile(`\$(instance|queue|kind)\b`)

// chosen is a query as Grafana sends it when everything is chosen.
func chosen(query string) string {
	query = strings.NewReplacer("$__rate_interval", "2s", `"$job"`, `"stint"`).Replace(query)
	return variableOfGrafana.ReplaceAllString(query, ".+")
}

// prometheusServer is one that runs, by the address of its API.
type prometheusServer string

// scrape starts a server, and returns when it has scraped the target for a while.
func scrape(t *testing.T, program, target string) prometheusServer {
	t.Helper()
	rules, err := filepath.Abs(filepath.Join(docs, "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf(`
global: {scrape_interval: 200ms, evaluation_interval: 200ms}
rule_files: [%q]
scrape_configs:
  - job_name: stint
    static_configs: [{targets: [%q]}]
`, rules, target)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	ctx, stop := context.WithCancel(context.Background())
	var log strings.Builder
	cmd := exec.CommandContext(ctx, program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was interrupted
		if t.Failed() {
			t.Logf("prometheus says\n%s", &log)
		}
	})
	p := prometheusServer("http://" + address + "/api/v1/")
	p.until(t, "count_over_time(stint_engines[1m]) >= 15")
	return p
}

// until waits for a query to have a result.
func (p prometheusServer) until(t *testing.T, query string) {
	t.Helper()
	var seen struct{ Result []json.RawMessage }
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := p.ask("query", url.Values{"query": {query}}, &seen)
		if err == nil && len(seen.Result) > 0 {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("after a minute there is nothing of %s: %v", query, err)
		}
	}
}

// ask calls the API, which wraps its answers.
func (p prometheusServer) ask(what string, form url.Values, data any) error {
	answer, err := http.Get(string(p) + what + "?" + form.Encode())
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	wrapped := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(answer.Body).Decode(&wrapped); err != nil {
		return err
	}
	if wrapped.Status != "success" {
		return fmt.Errorf("%s: %s", form.Get("query"), wrapped.Error)
	}
	return nil
}

// freeAddress is one that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
