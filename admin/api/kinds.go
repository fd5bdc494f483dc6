package api

import (
	"context"
	"net/http"

	"github.com/stint-go/stint"
)

func (a *api) kinds() {
	register(a, operation{
		method: http.MethodGet, path: "/kinds", id: "list-kinds", tag: "kinds", summary: "List the kinds that engines declared, with the defaults of their jobs",
	}, a.listKinds)
}

func (a *api) listKinds(ctx context.Context, _ *struct{}) (*answer[[]stint.Declaration], error) {
	return list(a.store.Kinds(ctx))
}

// Policy is how a [retry.Policy] is written.
type Policy struct {
	_ struct{} `additionalProperties:"true" doc:"What happens after a failure. What else is in it depends on the policy"`

	Policy string `json:"policy" doc:"Which one: none, fixed, exponential, ..."`
}
