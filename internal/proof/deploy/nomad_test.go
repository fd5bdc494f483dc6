package deploy

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/nomad/api"

	"github.com/stint-go/stint/internal/proof/pgtest"
)

func parseNomad(t *testing.T, text string) *hclsyntax.Block {
	t.Helper()
	parsed, problems := hclsyntax.ParseConfig([]byte(text), "stint.nomad.hcl", hcl.InitialPos)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	body := parsed.Body.(*hclsyntax.Body)
	if len(body.Blocks) != 1 || body.Blocks[0].Type != "job" || len(body.Attributes) > 0 {
		t.Fatal("it is not one job")
	}
	return body.Blocks[0]
}

// unknownTo lists what a block says that the type which Nomad reads it into does not have.
func unknownTo(of reflect.Type, body *hclsyntax.Body, where string) (unknown []string) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct { // a map: its keys are free
		return nil
	}
	fields := map[string]reflect.Type{}
	for f := range of.Fields() {
		if name, how, ok := strings.Cut(f.Tag.Get("hcl"), ","); ok || name != "" {
			fields[name+map[bool]string{true: " {}"}[how == "block"]] = f.Type
		}
	}
	for name := range body.Attributes {
		if fields[name] == nil {
			unknown = append(unknown, where+"."+name)
		}
	}
	for _, b := range body.Blocks {
		if inner := fields[b.Type+" {}"]; inner != nil {
			unknown = append(unknown, unknownTo(inner, b.Body, where+"."+b.Type)...)
		} else {
			unknown = append(unknown, where+"."+b.Type+" {}")
		}
	}
	return unknown
}

func TestNomadKnowsWhatTheJobSays(t *testing.T) {
	if unknown := unknownTo(reflect.TypeFor[api.Job](), parseNomad(t, file(t, "nomad/stint.nomad.hcl")).Body, "job"); unknown != nil {
		t.Errorf("Nomad does not know %v", unknown)
	}
	wrong := parseNomad(t, "job \"x\" {\n typ = \"service\"\n group \"y\" {\n task \"z\" { kill_timout = \"1s\" }\n volumes {}\n }\n}")
	if got := fmt.Sprint(unknownTo(reflect.TypeFor[api.Job](), wrong.Body, "job")); got != "[job.typ job.group.task.kill_timout job.group.volumes {}]" {
		t.Errorf("of a job with three mistakes these were found: %s", got)
	}
}

// inside finds the first block of a type, and by a label if one is given.
func inside(b *hclsyntax.Block, path ...string) *hclsyntax.Block {
	for _, step := range path {
		kind, label, _ := strings.Cut(step, " ")
		var found *hclsyntax.Block
		for _, inner := range b.Body.Blocks {
			if found == nil && inner.Type == kind && (label == "" || inner.Labels[0] == label) {
				found = inner
			}
		}
		if found == nil {
			panic("there is no " + step)
		}
		b = found
	}
	return b
}

func values(b *hclsyntax.Block, name string) (all []string) {
	v, problems := b.Body.Attributes[name].Expr.Value(nil)
	if problems.HasErrors() {
		panic(problems)
	}
	if !v.CanIterateElements() {
		return []string{v.AsString()}
	}
	for _, e := range v.AsValueSlice() {
		all = append(all, e.AsString())
	}
	return all
}

func TestTheJobOfNomadStartsWhatItSays(t *testing.T) {
	t.Parallel()
	s := newSite(t, pgtest.New(t)) // an empty one: the first task migrates it
	group := inside(parseNomad(t, s.replace.Replace(file(t, "nomad/stint.nomad.hcl"))), "group engine")
	for _, name := range []string{"migrate", "engine"} {
		task := inside(group, "task "+name)
		p := program{args: values(inside(task, "config"), "args"), env: map[string]string{}, once: name == "migrate"}
		key, value, _ := strings.Cut(values(inside(task, "template"), "data")[0], "=")
		if !strings.HasPrefix(value, `{{ with nomadVar "nomad/jobs/stint" }}{{ .url }}`) {
			t.Errorf("%s has the secret %s", name, value)
		}
		p.env[key] = s.url
		if !p.once {
			for name := range inside(task, "env").Body.Attributes {
				p.env[name] = values(inside(task, "env"), name)[0]
			}
			p.kill = duration(values(task, "kill_timeout")[0])
			p.asked = []string{"http://127.0.0.1" + p.env["STINT_HEALTH"] + values(inside(group, "service", "check"), "path")[0]}
		}
		t.Run(name, p.run)
	}
}

func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}
