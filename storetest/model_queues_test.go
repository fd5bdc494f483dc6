package storetest_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// exactly is the name that a queue is known by.
func (d *database) exactly(queue string) string {
	if d.is("takes names for others") {
		return strings.ToLower(queue)
	}
	return queue
}

func (m *model) Pause(ctx context.Context, queue, by, why string) (bool, error) {
	if err := valid.Queue(queue); err != nil && !m.is("pauses whatever it is told") {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	queue = m.exactly(queue)
	if _, paused := m.paused[queue]; paused && !m.is("pauses anew") {
		return false, nil
	}
	m.paused[queue] = store.QueueInfo{Name: queue, Paused: time.Now(), By: valid.CleanText(by, 255), Why: valid.CleanText(why, 1<<10)}
	if !m.is("does not ring for pauses") {
		m.ring()
	}
	return true, nil
}

func (m *model) Resume(_ context.Context, queue string) (bool, error) {
	if err := valid.Queue(queue); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	queue = m.exactly(queue)
	if _, paused := m.paused[queue]; !paused {
		return m.is("always resumes"), nil
	}
	delete(m.paused, queue)
	if !m.is("does not ring for resumptions") {
		m.ring()
	}
	return true, nil
}

func (m *model) Paused(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.paused)), nil
}

func (m *model) Queues(context.Context) ([]store.QueueInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]store.QueueInfo{}
	for name, q := range m.paused {
		if !m.is("lists queues with jobs only") {
			q.Counts = map[stint.State]int64{}
			all[name] = q
		}
	}
	for _, j := range m.all() {
		q, ok := all[j.Queue]
		if !ok {
			q = store.QueueInfo{Name: j.Queue, Counts: map[stint.State]int64{}}
		}
		q.Counts[j.State]++
		all[j.Queue] = q
	}
	var list []store.QueueInfo
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[name])
	}
	return list, nil
}
