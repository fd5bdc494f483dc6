// Package observe turns the events of engines and the statements of stores into
// log lines; its subpackages make metrics, traces and health probes.
//
//	engine ── Config.OnEvent ──▶ Fan ─┬─▶ Log        lines of log/slog
//	                                  ├─▶ observe/prom    metrics for Prometheus
//	                                  └─▶ your own function
//	store ─── Config.OnQuery ──▶ SQL                 a line for each statement
//	client, mux ── Use ────────▶ observe/spans       traces over OpenTelemetry
//	engine.Alive, Ready ───────▶ observe/probes      answers to probes over HTTP
//
// Each of these is optional: engines import none of them, a program links only
// those that it imports, and a panic in one of them harms no job.
package observe
