// Package monitoring checks what docs/monitoring has for those who watch stint: a
// dashboard for Grafana and alert rules for Prometheus.
//
// Every query of both is read, and asks for metrics, labels and values that a real
// engine exports. Where Prometheus is installed (make prometheus), the rules pass
// their own tests, and a real server scrapes a real engine and answers every query.
package monitoring
