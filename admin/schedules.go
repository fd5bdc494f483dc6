package admin

import (
	"net/http"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
)

// schedulesPage lists the schedules.
type schedulesPage struct {
	Schedules []*stint.ScheduleInfo
}

func (b *Board) schedules(r *http.Request) (any, error) {
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

func (b *Board) schedule(r *http.Request) (any, error) {
	s, err := view.ScheduleOf(r.Context(), b.store, r.PathValue("schedule"))
	if err != nil {
		return nil, err
	}
	p := schedulePage{Schedule: s, Hidden: b.config.API.Blind(r.Context())}
	p.Crew, err = view.CrewFor(r.Context(), b.store, s.Jobs...)
	return p, err
}

// scheduleVerb does what the address says to the schedule that it names.
func (b *Board) scheduleVerb(r *http.Request) (flash, error) {
	name := r.PathValue("schedule")
	switch verb := r.PathValue("verb"); verb {
	case "pause":
		return b.change(r, http.MethodPost, place("schedules", name, verb), map[string]string{"why": r.PostForm.Get("why")}, "The schedule is paused.", "It was paused before.")
	case "resume":
		return b.change(r, http.MethodPost, place("schedules", name, verb), nil, "The schedule goes on, from now.", "It was not paused.")
	case "run":
		var made stint.Receipt
		if err := b.call(r.Context(), http.MethodPost, place("schedules", name, verb), nil, &made); err != nil {
			return flash{}, err
		}
		return flash{OK: true, Text: "It made", Link: "/jobs/" + made.ID.String(), Word: "job " + made.ID.String()}, nil
	case "remove":
		if r.PostForm.Get("confirm") != "remove" {
			return flash{Text: "Nothing was done: type the word remove to confirm."}, nil
		}
		var cancelled []stint.ID
		if err := b.call(r.Context(), http.MethodDelete, place("schedules", name, ""), nil, &cancelled); err != nil {
			return flash{}, err
		}
		said := "The schedule " + name + " is forgotten."
		if n := len(cancelled); n > 0 {
			said += " " + cameTo(map[string]int{string(stint.CancelledNow): n})
		}
		return flash{OK: true, Text: said}, nil
	}
	return flash{}, errNowhere
}
