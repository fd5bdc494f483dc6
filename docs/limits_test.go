package docs

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/stinttest"
)

type (
	Mail struct {
		Tenant string   `json:"tenant"`
		To     []string `json:"to"`
	}
	Rows struct {
		Tenant string `json:"tenant"`
	}
	Change struct {
		Account int `json:"account"`
	}
)

var Send = stint.NewKind[Mail]("send", stint.Limited("smtp"), stint.LimitedBy("tenant", "/tenant"))

var Apply = stint.NewKind[Change]("apply", stint.LimitedBy("account", "/account"))

// limits.md
func TestLimits(t *testing.T) {
	var Import = stint.NewKind[Rows]("import", stint.LimitedBy("tenant", "/tenant"))

	mux := stint.NewMux()
	mux.Limit("smtp", stint.LimitRule{AtOnce: 10, Starts: 100, Per: time.Minute}) // of all together
	mux.Limit("tenant", stint.LimitRule{AtOnce: 2})                               // of each tenant

	mux.Limit("queue=mail", stint.LimitRule{AtOnce: 20, Starts: 1000, Per: time.Hour})
	mux.Limit("erp", stint.LimitRule{AtOnce: 5, Starts: 60, Per: time.Minute, Burst: 10})
	mux.Limit("account", stint.LimitRule{AtOnce: 1, InOrder: true})

	answers := []int{http.StatusTooManyRequests, http.StatusOK}
	stint.Handle(mux, Send, func(ctx context.Context, job *stint.Job, in Mail) error {
		resp := &http.Response{StatusCode: answers[0]}
		answers = answers[1:]
		if resp.StatusCode == http.StatusTooManyRequests {
			return stint.Defer("smtp", 30*time.Second) // this job is snoozed, and no job of smtp starts until then
		}
		return nil
	})
	handles(mux, Import)
	handles(mux, Apply)
	w := stinttest.New(t, mux)
	ctx, client, mail := t.Context(), w.Client(), Mail{"a", []string{"b", "c"}}

	id, err := Send.Enqueue(ctx, client, mail, stint.Limited(fmt.Sprintf("%d*smtp", len(mail.To)))) // in place of the kind's smtp
	must(t, err)
	job, err := client.Job(ctx, id)
	must(t, err)
	if fmt.Sprint(job.Limits) != "[2*smtp tenant=a]" && fmt.Sprint(job.Limits) != "[tenant=a 2*smtp]" {
		t.Errorf("its limits are %q", job.Limits)
	}
	_, err = Apply.Enqueue(ctx, client, Change{7})
	must(t, err)
	_, err = Import.Enqueue(ctx, client, Rows{"a"})
	must(t, err)
	ran(t, w, "apply", 1)
}

// limits.md, a kind by customer
func TestALimitForEachAccount(t *testing.T) {
	mux := stint.NewMux()
	mux.Limit("account", stint.LimitRule{AtOnce: 1})
	if len(mux.Limits()) != 1 {
		t.Errorf("the limits are %v", mux.Limits())
	}
}
