package storetest_test

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

func (m *model) WriteMetrics(_ context.Context, x stint.Metrics) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	x.Kinds = maps.Clone(x.Kinds)
	if !m.is("takes an engine's clock for its own") {
		x.At = time.Now()
	}
	i := slices.IndexFunc(m.metrics, func(y stint.Metrics) bool {
		return y.Instance == x.Instance && (y.Since.Equal(x.Since) || m.is("knows engines by their names"))
	})
	switch {
	case i >= 0 && m.is("keeps the first figures"):
		return nil
	case i >= 0:
		m.metrics = slices.Delete(m.metrics, i, i+1)
	}
	m.metrics = append(m.metrics, x)
	return nil
}

func (m *model) EngineMetrics(context.Context) ([]stint.Metrics, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.Clone(m.metrics)
	if !m.is("lists the oldest figures first") {
		slices.Reverse(list)
	}
	return list, nil
}
