// Package observe turns what engines and stores tell into lines of a log, and
// into answers about their health.
//
//	engine ── Config.OnEvent ──▶ Fan ─┬─▶ Log        lines of log/slog
//	                                  ├─▶ observe/prom    metrics for Prometheus
//	                                  └─▶ your own function
//	store ─── Config.OnQuery ──▶ SQL                 a line for each statement
//	client, mux ── Use ────────▶ observe/spans       traces over OpenTelemetry
//	engine.Alive, Ready ───────▶ Health              answers to probes over HTTP
//
// Each of these is a leaf: engines know none of them, a program that does not
// import one does not link it, and one that fails harms no job.
package observe
