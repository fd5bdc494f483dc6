package storetest_test

import (
	"cmp"
	"context"
	"slices"

	"github.com/stint-go/stint/store"
)

func (m *model) FormerEngines(_ context.Context, f store.FormerFilter) ([]store.FormerEngine, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []store.FormerEngine
	for token, info := range m.history {
		end, gone := m.ends[token]
		switch {
		case !gone && !m.is("lists the living as gone"):
		case len(f.Engines) > 0 && !slices.Contains(f.Engines, token):
		case f.Instance != "" && info.Instance != f.Instance:
		case end.At.Before(f.Since) && !m.is("lists who went long ago"):
		default:
			end.ByInstance = m.history[end.By].Instance
			all = append(all, store.FormerEngine{EngineInfo: info, EngineEnd: end})
		}
	}
	slices.SortFunc(all, func(a, b store.FormerEngine) int {
		if m.is("lists the first end first") {
			a, b = b, a
		}
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Token, b.Token))
	})
	return all[:min(len(all), cmp.Or(f.Limit, 100))], nil
}

func (m *model) LostAttempts(_ context.Context, engine store.EngineID) ([]store.LostAttempt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []store.LostAttempt
	jobs := m.all()
	for _, pos := range m.ends[engine].LostAt {
		x := m.done[pos]
		if x == nil {
			continue
		}
		for _, j := range jobs {
			if j.ID != x.Job {
				continue
			}
			a := store.LostAttempt{Job: j.ID, Attempt: x.Attempt, Kind: j.Kind, Queue: j.Queue, State: j.State}
			if m.is("tells the last attempt for the lost one") {
				a.Attempt = j.Attempt
			}
			all = append(all, a)
		}
	}
	return all, nil
}

// end keeps how an engine that is buried ended.
func (d *database) end(b store.Burial, e store.EngineInfo, end store.EngineEnd) {
	end.At, end.Why, end.By = d.buried[b.Engine], b.Why, b.By
	if d.is("forgets who buried") {
		end.By = 0
	}
	was := d.history[b.Engine]
	if was.Beat = e.Beat; d.is("forgets the last beat") {
		was.Beat = was.Joined
	}
	d.history[b.Engine], d.ends[b.Engine] = was, end
}
