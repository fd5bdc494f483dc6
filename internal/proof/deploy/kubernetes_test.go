package deploy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
		"keda.sh/v1alpha1 ScaledObject": &scaledObject{}, "keda.sh/v1alpha1 TriggerAuthentication": &triggerAuthentication{},
		"policy/v1 PodDisruptionBudget": &policy.PodDisruptionBudget{}, "autoscaling/v2 HorizontalPodAutoscaler": &autoscaling.HorizontalPodAutoscaler{},
	}[head.APIVersion+" "+head.Kind]
	if object == nil {
		return "", nil, fmt.Errorf("there is no %s in %s", head.Kind, head.APIVersion)
	}
	return head.Kind + " " + head.Metadata.Name, object, yaml.UnmarshalStrict(text, object)
}

func TestTheManifestsOfKubernetesStartWhatTheySay(t *testing.T) {
	t.Parallel()
	s := newSite(t, pgtest.New(t)) // an empty one: the Job migrates it
	all := objects(t, s)
	if t.Failed() {
		return
	}
	token := writeSettings(t, s, all)
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
		t.Run(c.name, func(t *testing.T) {
			p := pod(t, s, all, c.of.Spec, c.once)
			if c.name == "dashboard" {
				p.while = func() { scale(t, s, all, token) }
			}
			p.run(t)
		})
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

// The metric that an autoscaler looks at is made, by the rule beside it, of one that a dashboard serves.
func TestTheAutoscalerAsksForAMetricThatIsThere(t *testing.T) {
	s := newSite(t, "")
	metric := objects(t, s)["HorizontalPodAutoscaler stint-engine"].(*autoscaling.HorizontalPodAutoscaler).Spec.Metrics[0].External.Metric
	rule := page(t, "deploy/kubernetes/scaling/hpa.yaml")
	gauge := regexp.MustCompile(`seriesQuery: '(\w+)'\n#\s+name: \{as: ` + metric.Name + `\}`).FindStringSubmatch(rule)
	if gauge == nil || !strings.Contains(page(t, "docs/monitoring.md"), "| `"+gauge[1]+"` |") {
		t.Errorf("no rule makes %s of a gauge that there is: %q", metric.Name, gauge)
	}
}

// writeSettings writes the dashboard's settings as its secret has them, with a token that is known, and returns that.
func writeSettings(t *testing.T, s *site, all map[string]any) string {
	t.Helper()
	var token struct{ Token, SHA256 string }
	out, err := exec.Command(stint, "dashboard", "token", "prometheus", "--json").Output()
	if err != nil || json.Unmarshal(out, &token) != nil || token.SHA256 == "" {
		t.Fatalf("%v: %s", err, out)
	}
	for name, text := range all["Secret stint-dashboard"].(*core.Secret).StringData {
		text = strings.Replace(text, strings.Repeat("0", 64), token.SHA256, 1)
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return token.Token
}

// What KEDA reads of its objects, as far as the manifest goes: its own types are of a module that is ten times as large as this.
type (
	scaledObject struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			ScaleTargetRef                                                    struct{ Name string }
			MinReplicaCount, MaxReplicaCount, PollingInterval, CooldownPeriod int
			Fallback                                                          struct{ FailureThreshold, Replicas int }
			Triggers                                                          []struct {
				Type, MetricType  string
				Metadata          struct{ URL, ValueLocation, TargetValue, AuthMode string }
				AuthenticationRef struct{ Name string }
			}
		}
	}
	triggerAuthentication struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			SecretTargetRef []struct{ Parameter, Name, Key string }
		}
	}
)

// scale asks a dashboard as KEDA does: by the name of the service, with a token.
func scale(t *testing.T, s *site, all map[string]any, token string) {
	object := all["ScaledObject stint-engine"].(*scaledObject)
	trigger := object.Spec.Triggers[0]
	auth, _ := all["TriggerAuthentication "+trigger.AuthenticationRef.Name].(*triggerAuthentication)
	if auth == nil || all["Deployment "+object.Spec.ScaleTargetRef.Name] == nil {
		t.Errorf("%+v names what is not there", object.Spec)
		return
	}
	if of := auth.Spec.SecretTargetRef[0]; all["Secret "+of.Name].(*core.Secret).StringData[of.Key] == "" || of.Parameter != "token" {
		t.Errorf("the token is %+v", of)
	}
	host, path, _ := strings.Cut(strings.TrimPrefix(trigger.Metadata.URL, "http://"), "/")
	if service, _, _ := strings.Cut(host, "."); all["Service "+service] == nil {
		t.Errorf("there is no service %s", service)
	}
	ask := func(path string) (int, map[string]any) {
		r, _ := http.NewRequest(http.MethodGet, "http://127.0.0.1"+s.replace.Replace(":7070")+path, nil)
		r.Host = host
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var body map[string]any
		_ = json.NewDecoder(answer.Body).Decode(&body)
		return answer.StatusCode, body
	}
	if status, _ := ask("/metrics"); status != http.StatusOK {
		t.Errorf("asked for metrics by the name of the service it answers %d", status)
	}
	if refused([]string{"scale"}) != "" {
		t.Log("there is no stint scale yet: what KEDA asks is not asked here")
		return
	}
	status, body := ask("/" + path)
	if _, ok := body[trigger.Metadata.ValueLocation].(float64); status != http.StatusOK || !ok {
		t.Errorf("%s answers %d, %v", trigger.Metadata.URL, status, body)
	}
}
