package api

import (
	"context"
	"net/http"

	"github.com/stint-go/stint"
)

func (a *api) doctor() {
	register(a, operation{
		method: http.MethodGet, path: "/doctor", id: "doctor", tag: "figures", summary: "Say what is wrong and how to mend it",
		description: "It changes nothing, and takes some seconds at most, however many jobs there are.",
	}, a.diagnose)
}

func (a *api) diagnose(ctx context.Context, _ *struct{}) (*answer[[]stint.Finding], error) {
	return list(stint.Diagnose(ctx, a.store, stint.Examination{Bounded: a.Bounded}))
}
