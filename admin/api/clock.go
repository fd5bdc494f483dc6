package api

import (
	"context"
	"net/http"
	"time"

	"github.com/stint-go/stint/admin/view"
)

func (a *api) clock() {
	register(a, operation{
		method: http.MethodGet, path: "/clock", id: "read-clock", tag: "figures", summary: "Tell the time by the clock that decides",
		description: "The database's, where it has one, or else the server's. Whoever means a while ago counts from here.",
	}, a.readClock)
}

// Clock is what the clock that decides shows.
type Clock struct {
	Now time.Time `json:"now"`
}

func (a *api) readClock(ctx context.Context, _ *struct{}) (*answer[Clock], error) {
	now, err := view.Now(ctx, a.store)
	if err != nil {
		return nil, err
	}
	return &answer[Clock]{Clock{now}}, nil
}
