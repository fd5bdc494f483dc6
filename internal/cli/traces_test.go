package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collected is what a collector of OpenTelemetry was sent.
type collected struct {
	mu       sync.Mutex
	spans    []string // with their attributes
	services []string
}

// ServeHTTP implements [http.Handler].
func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var sent collector.ExportTraceServiceRequest
	body, err := io.ReadAll(r.Body)
	if err == nil && r.URL.Path == "/v1/traces" {
		err = proto.Unmarshal(body, &sent)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, from := range sent.ResourceSpans {
		for _, a := range from.Resource.Attributes {
			if a.Key == "service.name" {
				c.services = append(c.services, a.Value.GetStringValue())
			}
		}
		for _, scope := range from.ScopeSpans {
			for _, span := range scope.Spans {
				var text strings.Builder
				text.WriteString(span.Name)
				for _, a := range span.Attributes {
					text.WriteString(" " + a.Key + "=" + a.Value.GetStringValue())
				}
				c.spans = append(c.spans, text.String())
			}
		}
	}
}

func TestAttemptsOfTheCommandAreTracedWhereTheEnvironmentSaysWhereTo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env     []string
		service string // "" where nothing is to come
	}{
		{nil, "stint"},
		{[]string{"OTEL_SERVICE_NAME=reports"}, "reports"},
		{[]string{"OTEL_TRACES_EXPORTER=none"}, ""},
		{[]string{"OTEL_SDK_DISABLED=true"}, ""},
	} {
		got := &collected{}
		server := httptest.NewServer(got)
		t.Cleanup(server.Close)
		file := filepath.Join(t.TempDir(), "jobs.db")
		if _, errs, code := session(t, false, "sh", "--db", file, "--", "true"); code != exitOK {
			t.Fatal(errs)
		}
		work := exec.CommandContext(t.Context(), "stint", "work", "--db", file, "--log-level", "debug")
		work.Env = append(os.Environ(), append(c.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL)...)
		said := &strings.Builder{}
		work.Stderr = said
		if err := work.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			if out, _, _ := session(t, false, "jobs", "list", "--db", file, "--state", "completed", "--ids"); out != "" {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("the job never ran")
			}
		}
		if err := errors.Join(work.Process.Signal(syscall.SIGTERM), work.Wait()); err != nil {
			t.Errorf("%v\n%s", err, said)
		}
		got.mu.Lock()
		spans, services := got.spans, slices.Compact(got.services)
		got.mu.Unlock()
		if c.service == "" {
			if len(spans) > 0 {
				t.Errorf("with %v the collector got %v", c.env, spans)
			}
			continue
		}
		if !slices.Equal(services, []string{c.service}) || len(spans) != 1 || !strings.HasPrefix(spans[0], "work sh ") || !strings.Contains(spans[0], "stint.attempt.outcome=completed") {
			t.Errorf("with %v the collector got %v of %v\n%s", c.env, spans, services, said)
		}
	}
}

func TestTracesThatCannotBeExportedAreRefusedOrToldOnce(t *testing.T) {
	const collector = "http://127.0.0.1:4318"
	for _, c := range []struct {
		env  map[string]string
		on   bool
		want string // of the error
	}{
		{nil, false, ""},
		{map[string]string{anyEndpoint: collector}, true, ""},
		{map[string]string{tracesEndpoint: collector, sdkDisabled: "TRUE"}, false, ""},
		{map[string]string{tracesExporter: "otlp"}, true, ""},
		{map[string]string{tracesExporter: "none", anyEndpoint: collector}, false, ""},
		{map[string]string{tracesExporter: "zipkin"}, false, ""}, // of another program, it seems
		{map[string]string{tracesExporter: "zipkin", anyEndpoint: collector}, false, `traces are not exported to "zipkin"`},
		{map[string]string{anyProtocol: "grpc", anyEndpoint: collector}, false, `the protocol "grpc" is not supported`},
	} {
		a := &app{env: func(name string) string { return c.env[name] }}
		on, err := a.exportsTraces()
		if said := fmt.Sprint(err); on != c.on || (err != nil) != (c.want != "") || !strings.Contains(said, c.want) {
			t.Errorf("with %v: %v, %v", c.env, on, err)
		}
	}
	var log strings.Builder
	answers := []error{nil, errors.New("away"), errors.New("away"), nil, nil, errors.New("away")}
	e := &loggedExporter{log: slog.New(slog.NewTextHandler(&log, nil)), SpanExporter: exportFunc(func() (err error) {
		err, answers = answers[0], answers[1:]
		return err
	})}
	for range 6 {
		if err := e.ExportSpans(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
	if lost, again := strings.Count(log.String(), "cannot be exported"), strings.Count(log.String(), "exported again"); lost != 2 || again != 1 {
		t.Errorf("the log says %d times that traces are lost, and %d times that they go again:\n%s", lost, again, &log)
	}
}

// exportFunc is an exporter that answers so.
type exportFunc func() error

func (f exportFunc) ExportSpans(context.Context, []trace.ReadOnlySpan) error { return f() }
func (exportFunc) Shutdown(context.Context) error                            { return nil }
