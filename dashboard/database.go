package dashboard

import (
	"net/http"

	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// databasePage is how the database fares.
type databasePage struct {
	Findings sample.Seen[[]report.Finding]
	Signs    sample.Seen[report.Facts]
	Leases   []store.Lease
	Schema   store.SchemaInfo
}

// Bytes are what the store takes on its disk.
func (p databasePage) Bytes() (sum int64) {
	for _, s := range p.Signs.Value.Sizes {
		sum += s.Bytes
	}
	return sum
}

func (b *Dashboard) database(r *http.Request) (any, error) {
	var p databasePage
	p.Signs, p.Findings = b.figures.doctor(r.Context())
	var err error
	if p.Leases, err = b.store.Leases(r.Context()); err != nil {
		return nil, err
	}
	p.Schema, err = b.store.Schema(r.Context())
	return p, err
}

// metricsPage is what engines counted.
type metricsPage struct {
	Engines []report.Metrics // the newest first
	Served  bool             // whether there is /metrics
}

func (b *Dashboard) metrics(r *http.Request) (any, error) {
	all, err := b.store.EngineMetrics(r.Context())
	return metricsPage{all, b.config.Metrics != nil}, err
}
