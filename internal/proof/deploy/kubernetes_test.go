package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/stint-go/stint/internal/proof/pgtest"
)

// objects reads all that the manifests have, by kind and name. A key that Kubernetes does not know is an error, as is one that is
// there twice.
func objects(t *testing.T, s *site) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, pattern := range []string{"*.yaml", "scaling/*.yaml"} {
		paths, _ := filepath.Glob(filepath.Join(root, "deploy/kubernetes", pattern))
		for _, path := range paths {
			rel, _ := filepath.Rel(filepath.Join(root, "deploy"), path)
			for i, text := range strings.Split(s.replace.Replace(file(t, rel)), "\n---\n") {
				kind, object, err := decode([]byte(text))
				if err != nil {
					t.Errorf("%s, object %d: %v", rel, i+1, err)
					continue
				}
				all[kind] = object
			}
		}
	}
	return all
}

func decode(text []byte) (string, any, error) {
	var head struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
	}
	if err := yaml.Unmarshal(text, &head); err != nil {
		return "", nil, err
	}
	object := map[string]any{
		"apps/v1 Deployment": &apps.Deployment{}, "batch/v1 Job": &batch.Job{}, "v1 Secret": &core.Secret{}, "v1 Service": &core.Service{},
		"policy/v1 PodDisruptionBudget": &policy.PodDisruptionBudget{}, "autoscaling/v2 HorizontalPodAutoscaler": &autoscaling.HorizontalPodAutoscaler{},
	}[head.APIVersion+" "+head.Kind]
	if object == nil {
		return "", nil, fmt.Errorf("there is no %s in %s", head.Kind, head.APIVersion)
	}
	return head.Kind + " " + head.Metadata.Name, object, yaml.UnmarshalStrict(text, object)
}

func TestTheManifestsOfKubernetesStartWhatTheySay(t *testing.T) {
	s := newSite(t, pgtest.New(t)) // an empty one: the Job migrates it
	all := objects(t, s)
	if t.Failed() {
		return
	}
	for name, text := range all["Secret stint-dashboard"].(*core.Secret).StringData {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	engine, dashboard := all["Deployment stint-engine"].(*apps.Deployment), all["Deployment stint-dashboard"].(*apps.Deployment)
	for _, c := range []struct {
		name string
		of   core.PodTemplateSpec
		once bool
	}{
		{"migrate", all["Job stint-migrate"].(*batch.Job).Spec.Template, true},
		{"engine", engine.Spec.Template, false},
		{"dashboard", dashboard.Spec.Template, false},
	} {
		t.Run(c.name, func(t *testing.T) { pod(t, s, all, c.of.Spec, c.once).run(t) })
	}
	for _, d := range []*apps.Deployment{engine, dashboard} {
		selects(t, d.Name, d.Spec.Selector.MatchLabels, d)
	}
	selects(t, "the budget of disruptions", all["PodDisruptionBudget stint-engine"].(*policy.PodDisruptionBudget).Spec.Selector.MatchLabels, engine)
	service := all["Service stint-dashboard"].(*core.Service)
	selects(t, "the service", service.Spec.Selector, dashboard)
	if to, port := service.Spec.Ports[0].TargetPort.StrVal, dashboard.Spec.Template.Spec.Containers[0].Ports[0].Name; to != port {
		t.Errorf("the service leads to the port %q, and the dashboard's is %q", to, port)
	}
	if of := all["HorizontalPodAutoscaler stint-engine"].(*autoscaling.HorizontalPodAutoscaler).Spec.ScaleTargetRef; of.Kind+" "+of.Name != "Deployment stint-engine" {
		t.Errorf("the autoscaler scales %v", of)
	}
}

// pod is the program of a pod. The values of its secrets are there, and the database's URL is another one.
func pod(t *testing.T, s *site, all map[string]any, of core.PodSpec, once bool) program {
	t.Helper()
	c := of.Containers[0]
	p := program{args: c.Args, env: map[string]string{}, once: once}
	for _, v := range c.Env {
		p.env[v.Name] = v.Value
		if v.ValueFrom != nil {
			secret, _ := all["Secret "+v.ValueFrom.SecretKeyRef.Name].(*core.Secret)
			if secret == nil || secret.StringData[v.ValueFrom.SecretKeyRef.Key] == "" {
				t.Errorf("there is no secret for %s", v.Name)
			}
			p.env[v.Name] = s.url
		}
	}
	for _, v := range of.Volumes {
		if secret, _ := all["Secret "+v.Secret.SecretName].(*core.Secret); secret == nil || secret.StringData[filepath.Base(p.env["STINT_CONFIG"])] == "" {
			t.Errorf("there is no secret for the volume %s", v.Name)
		}
	}
	if once {
		return p
	}
	if of.TerminationGracePeriodSeconds == nil {
		t.Fatal("it does not say how long a stop may take")
	}
	p.kill = time.Duration(*of.TerminationGracePeriodSeconds) * time.Second
	if hook := c.Lifecycle; hook != nil {
		p.kill -= time.Duration(hook.PreStop.Sleep.Seconds) * time.Second
	}
	for _, probe := range []*core.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		for _, port := range c.Ports {
			if port.Name == probe.HTTPGet.Port.StrVal {
				p.asked = append(p.asked, fmt.Sprintf("http://127.0.0.1:%d%s", port.ContainerPort, probe.HTTPGet.Path))
			}
		}
	}
	if len(p.asked) != 3 {
		t.Errorf("the probes are at %v", p.asked)
	}
	return p
}

// selects checks that a selector finds the pods of a deployment.
func selects(t *testing.T, who string, selector map[string]string, d *apps.Deployment) {
	t.Helper()
	for key, value := range selector {
		if d.Spec.Template.Labels[key] != value {
			t.Errorf("%s selects %s=%s, which pods of %s do not have", who, key, value, d.Name)
		}
	}
	if len(selector) < 2 {
		t.Errorf("%s selects by %v only", who, selector)
	}
}

// The metric that an autoscaler looks at is one that a dashboard serves.
func TestTheAutoscalerAsksForAMetricThatIsThere(t *testing.T) {
	s := newSite(t, "")
	metric := objects(t, s)["HorizontalPodAutoscaler stint-engine"].(*autoscaling.HorizontalPodAutoscaler).Spec.Metrics[0].External.Metric
	for label := range metric.Selector.MatchLabels {
		if name := metric.Name + "{" + label + "}"; !strings.Contains(page(t, "docs/dashboard.md"), "`"+name+"`") {
			t.Errorf("there is no metric %s", name)
		}
	}
}
