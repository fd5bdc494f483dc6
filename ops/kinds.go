package ops

import (
	"context"
	"net/http"

	"github.com/stint-go/stint"
)

// ListKinds lists the kinds that engines declared.
var ListKinds = declare(&Op[None, []stint.KindInfo]{
	Decl: Decl{Name: "kinds list", Method: http.MethodGet, Path: "/kinds", Summary: "List the kinds that engines declared, with the defaults of their jobs"},
	do: func(ctx context.Context, l *Local, _ *None) ([]stint.KindInfo, error) {
		return list(l.Store.Kinds(ctx))
	},
})

// Policy is how a [retry.Policy] is written.
type Policy struct {
	_ struct{} `additionalProperties:"true" doc:"What happens after a failure. What else is in it depends on the policy"`

	Policy string `json:"policy" doc:"Which one: none, fixed, exponential, ..."`
}
