package deploy

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/stint-go/stint/internal/proof/pgtest"
)

func TestTheComposeFileStartsWhatItSays(t *testing.T) {
	t.Parallel()
	s := newSite(t, pgtest.New(t)) // an empty one: the file migrates it
	s.settings(t, "stint.toml")
	project, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir:  s.dir,
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: []byte(s.replace.Replace(file(t, "compose.yaml")))}},
		Environment: types.Mapping{"POSTGRES_PASSWORD": "secret"},
	})
	if err != nil {
		t.Fatal(err)
	}
	probe := healthCheck(t)
	for _, name := range []string{"migrate", "engine", "dashboard"} {
		service, err := project.GetService(name)
		if err != nil {
			t.Fatal(err)
		}
		p := program{args: service.Command, env: map[string]string{"STINT_HEALTH": s.replace.Replace(":9070")}, once: name == "migrate"}
		for key, value := range service.Environment {
			p.env[key] = *value
		}
		if !strings.HasPrefix(p.env["STINT_DB"], "postgres://stint@postgres/") || p.env["PGPASSWORD"] != "secret" {
			t.Errorf("%s reaches the database by %v", name, p.env)
		}
		p.env["STINT_DB"] = s.url
		if !p.once {
			p.asks = [][]string{probe, append(probe, "--ready")}
			p.kill = dockerKills
			if service.StopGracePeriod != nil {
				p.kill = duration(service.StopGracePeriod.String())
			}
			if service.HealthCheck != nil {
				t.Errorf("%s has a health check of its own, %v, that is not tested", name, service.HealthCheck.Test)
			}
		}
		// Where another file is renamed over one that is mounted, the container goes on to see the old one.
		if config := p.env["STINT_CONFIG"]; config != "" && (len(service.Volumes) != 1 || service.Volumes[0].Target != filepath.Dir(config)) {
			t.Errorf("%s reads %s, and mounts %v", name, config, service.Volumes)
		}
		t.Run(name, p.run)
	}
}
