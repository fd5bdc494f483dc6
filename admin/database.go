package admin

import (
	"net/http"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/sample"
)

// databasePage is how the database fares.
type databasePage struct {
	Findings sample.Seen[[]stint.Finding]
	Signs    sample.Seen[stint.Signs]
	Leases   []stint.Lease
	Schema   stint.SchemaInfo
}

// Bytes are what the store takes on its disk.
func (p databasePage) Bytes() (sum int64) {
	for _, s := range p.Signs.Value.Sizes {
		sum += s.Bytes
	}
	return sum
}

func (b *Board) database(r *http.Request) (any, error) {
	var p databasePage
	p.Signs, p.Findings = b.figures.doctor(r.Context())
	var err error
	if p.Leases, err = b.store.Leases(r.Context()); err != nil {
		return nil, err
	}
	p.Schema, err = b.store.Schema(r.Context())
	return p, err
}

// releaseLease frees the lease that the address names.
func (b *Board) releaseLease(r *http.Request) (flash, error) {
	name := r.PathValue("lease")
	var from stint.Deposition
	if err := b.call(r.Context(), http.MethodPost, place("leases", name, "release"), map[string]string{"why": r.PostForm.Get("why")}, &from); err != nil {
		return flash{}, err
	}
	return flash{OK: true, Text: "The lease " + name + " is free; " + from.Instance + " had it."}, nil
}

// metricsPage is what engines counted.
type metricsPage struct {
	Engines []stint.Metrics // the newest first
	Served  bool            // whether there is /metrics
}

func (b *Board) metrics(r *http.Request) (any, error) {
	all, err := b.store.EngineMetrics(r.Context())
	return metricsPage{all, b.config.Metrics != nil}, err
}
