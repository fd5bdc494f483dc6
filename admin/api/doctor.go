package api

import (
	"context"
	"net/http"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/guard"
)

func (a *api) doctor() {
	register(a, operation{
		method: http.MethodGet, path: "/doctor", id: "doctor", tag: "figures", summary: "Say what is wrong and how to mend it",
		description: "It changes nothing, and takes some seconds at most, however many jobs there are. `deep` also checks an SQLite file page by page, which takes as long as the file is large, and a minute at most; that is for the role operator.", within: changeTime,
	}, a.diagnose)
}

func (a *api) diagnose(ctx context.Context, in *struct {
	Deep bool `query:"deep" doc:"Also check an SQLite file page by page"`
}) (*answer[[]stint.Finding], error) {
	if in.Deep && guard.Of(ctx).Role < guard.Operator {
		return nil, forbidden(guard.Operator)
	}
	return list(stint.Diagnose(ctx, a.store, stint.Examination{Deep: in.Deep, Bounded: a.Bounded}))
}
