package dashboard_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/stint-go/stint"
)

// Whatever people have in hand leads to the job, and what is meant without doubt is shown at once.
func TestOneBoxFindsJobsAndWhateverHasAName(t *testing.T) {
	for _, path := range []string{"", "/below"} {
		s := openAt(t, path)
		client := stint.NewClient(s.store)
		enqueue := func(kind, args string, opts ...stint.Option) stint.ID {
			t.Helper()
			id, err := client.Enqueue(t.Context(), stint.KindInfo{Name: kind, Queue: "mail"}.Job(json.RawMessage(args), opts...))
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		order := enqueue("send_invoice", `{"order":4711,"customer":{"id":"c7"}}`, stint.URN("urn:shop:order:4711"))
		tagged := enqueue("send_invoice", `{"order":4712}`, stint.Tag("vip", "tenant=acme"))
		enqueue("send_invoice", `{"order":4713}`, stint.Tag("twice"))
		enqueue("send_invoice", `{"order":4713}`, stint.Tag("twice"))
		indexed := enqueue("send_invoice", `{"order":4714,"to":"c\"d"}`, stint.Indexed("/order", "/to"))
		enqueue("send_invoice", `{"order":4715}`, stint.Indexed("/order"))
		enqueue("send_invoice", `{"order":4715}`, stint.Indexed("/order"))
		quoted := enqueue("send_invoice", `{}`, stint.Tag("to=c d"))

		at := func(text string) (string, string) {
			t.Helper()
			res, err := s.client.Get(s.server.URL + path + "/search?" + url.Values{"q": {text}}.Encode())
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			_, shown := s.get("/search?" + url.Values{"q": {text}}.Encode())
			where, below := strings.CutPrefix(res.Request.URL.Path, path)
			if !below {
				t.Errorf("%q leads out of the dashboard, to %s", text, res.Request.URL)
			}
			return where, said(shown)
		}
		s.knock()
		for text, want := range map[string]string{
			order.String(): "/jobs/" + order.String(), "#" + order.String(): "/jobs/" + order.String(), "job " + order.String(): "/jobs/" + order.String(), " " + order.String() + " ": "/jobs/" + order.String(),
			"urn:shop:order:47": "/jobs/" + order.String(), "urn:shop:*": "/jobs/" + order.String(),
			"urn:shop:order:4711": "/jobs/" + order.String(), "args.order = 4711": "/jobs/" + order.String(), "order=4711": "/jobs/" + order.String(), "args.customer.id=c7": "/jobs/" + order.String(),
			"args.order = 4714": "/jobs/" + indexed.String(), `args.to="c\"d"`: "/jobs/" + indexed.String(), `args.to = "c d"`: "/jobs/" + quoted.String(), "vip": "/jobs/" + tagged.String(), "tenant = acme": "/jobs/" + tagged.String(), "MAIL": "/queues/mail", "schedul": "/schedules",
		} {
			if got, _ := at(text); got != want {
				t.Errorf("%q leads to %s, want %s", text, got, want)
			}
		}
		for text, want := range map[string]string{
			"": "Enter the ID of a job", "9999": "Nothing is called 9999", "no such thing": "Nothing is called no such thing", "twice": "With the tag twice", "order=4713": "With the argument order", "args.order = 4715": "With the tag order=4715",
			"e": `<dt>Page</dt>`, strings.Repeat("x", 290): "Nothing is called", "order=\x01": "Nothing is called", "<b>": "Nothing is called &lt;b&gt;",
		} {
			if where, got := at(text); where != "/search" || !strings.Contains(got, want) {
				t.Errorf("for %q, %s says %s", text, where, got)
			}
		}
		if _, got := at("args.order = 4715"); strings.Contains(got, "With the argument") {
			t.Errorf("what its index found is shown twice: %s", got)
		}
		s.stranger() // arguments are hidden from viewers
		for _, text := range []string{"args.order = 4711", "order=4711"} {
			if where, got := at(text); where != "/search" || !strings.Contains(got, "Nothing is called") {
				t.Errorf("a viewer finds %q at %s: %s", text, where, got)
			}
		}
	}
}
