package dashboard

import (
	"net/http"

	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/store"
)

// schedulesPage lists the schedules.
type schedulesPage struct {
	Schedules []*store.ScheduleInfo
}

func (b *Dashboard) schedules(r *http.Request) (any, error) {
	all, err := b.store.Schedules(r.Context())
	var p schedulesPage
	for i := range all {
		p.Schedules = append(p.Schedules, &all[i])
	}
	return p, err
}

// schedulePage is one.
type schedulePage struct {
	view.Schedule
	Crew   view.Crew `json:"-"` // whose beats are no news
	Hidden bool      // what it enqueues is not for who looks
}

func (p schedulePage) title() string { return "Schedule " + p.Schedule.Schedule.Name }

func (b *Dashboard) schedule(r *http.Request) (any, error) {
	s, err := view.ScheduleOf(r.Context(), b.store, r.PathValue("schedule"))
	if err != nil {
		return nil, err
	}
	p := schedulePage{Schedule: s, Hidden: b.config.API.Blind(r.Context())}
	p.Crew, err = view.CrewFor(r.Context(), b.store, s.Jobs...)
	return p, err
}
