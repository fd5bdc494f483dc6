package httpjob

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/jobs"
)

func TestArgumentsThatCanNeverBeRightAreNamed(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{`{}`, "args.url: a URL is needed"},
		{`{"url":"example.com"}`, `args.url: the scheme is "", not http or https`},
		{`{"url":"file:///etc/passwd"}`, `args.url: the scheme is "file", not http or https`},
		{`{"url":"http://"}`, "args.url: the host is missing"},
		{`{"url":"http://:80/"}`, "args.url: the host is missing"},
		{`{"url":"http://me:secret@host:port/"}`, `args.url: invalid port ":port" after host`},
		{`{"url":"http://h/","method":"GET /"}`, `args.method: "GET /" is not a method`},
		{`{"url":"http://h/","method":"CONNECT"}`, "args.method: CONNECT is for proxies"},
		{`{"url":"http://h/","headers":{"a b":"c"}}`, `args.headers: "a b" is not a header's name`},
		{`{"url":"http://h/","headers":{"a":"b\r\nc: d"}}`, "args.headers: the value of a has a control character"},
		{`{"url":"http://h/","headers":{"stint-job":"1"}}`, "args.headers: Stint-Job is set by the engine"},
		{`{"url":"http://h/","headers":{"content-length":"1"}}`, "args.headers: Content-Length is set by the engine"},
		{`{"url":"http://h/","body":"a","json":{}}`, "args: body and json exclude each other"},
		{`{"url":"http://h/","expect":[20]}`, "args.expect: 20 is not a status from 200 to 599"},
		{`{"url":"http://h/","expect":200}`, "args.expect: got a JSON number, want []int"},
		{`{"url":"http://h/","timeout":10}`, `args.timeout: got 10, want a time with its unit, such as "10s"`},
		{`{"url":"http://h/","timeout":"10"}`, `args.timeout: "10" has no unit; write 10s or 10m`},
		{`{"url":"http://h/","expct":[200]}`, `args: unknown field "expct"`},
		{`{"url":"http://h/"} 1`, "args: more than one JSON value"},
		{`{`, "args: unexpected EOF"},
	} {
		_, err := jobs.Decode[Args](json.RawMessage(tt.args))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.args, err, tt.want)
		}
		if !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("%s: %v is not an invalid input", tt.args, err)
		}
	}
}

func TestATimeoutHasAUnit(t *testing.T) {
	args, err := jobs.Decode[Args](json.RawMessage(`{"url":"http://h/","timeout":"1m30s"}`))
	if err != nil || time.Duration(args.Timeout) != 90*time.Second {
		t.Errorf("got %v, %v", time.Duration(args.Timeout), err)
	}
	raw, err := json.Marshal(args)
	if want := `{"url":"http://h/","timeout":"1m30s"}`; string(raw) != want || err != nil {
		t.Errorf("got %s, %v, want %s", raw, err, want)
	}
}

// What decode accepts means the same after a round trip, and can be sent.
func FuzzDecode(f *testing.F) {
	f.Add(`{"url":"https://example.com/a?b=c"}`)
	f.Add(`{"method":"POST","url":"http://[::1]:80/","headers":{"a":"b"},"json":{"n":12345678901234567890},"expect":[200,204],"timeout":"10s"}`)
	f.Add(`{"url":"http://h","body":"x","headers":{"Host":"other"}}`)
	f.Fuzz(func(t *testing.T, raw string) {
		args, err := jobs.Decode[Args](json.RawMessage(raw))
		if err != nil {
			if !errors.Is(err, stint.ErrInvalid) {
				t.Fatalf("%v is not an invalid input", err)
			}
			return
		}
		if _, err := new(sender).build(t.Context(), &stint.Job{}, args); err != nil {
			t.Fatalf("%s was accepted and cannot be sent: %v", raw, err)
		}
		again, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		back, err := jobs.Decode[Args](again)
		if err != nil {
			t.Fatalf("%s was accepted as %s, which is refused: %v", raw, again, err)
		}
		if third, _ := json.Marshal(back); string(third) != string(again) {
			t.Fatalf("%s became %s", again, third)
		}
	})
}
