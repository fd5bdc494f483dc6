package stint_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
)

type sending struct{ To string }

func TestAnOperationIsAKindOfItsGroup(t *testing.T) {
	invoice := stint.NewGroup("invoice", stint.Queue("mail"), stint.Timeout(time.Minute), stint.Tag("money"))
	send := stint.NewOperation[sending](invoice, "send", stint.Timeout(time.Second), stint.Tag("post"))
	stint.NewResultOperation[int, string](invoice, "print")
	d := send.Declaration()
	if d.Name != "invoice.send" || d.Queue != "mail" || d.Timeout != time.Second || fmt.Sprint(d.Tags) != "[money post]" {
		t.Errorf("the operation is declared as %+v", d)
	}
	if got := fmt.Sprint(invoice.Operations()); got != "[print send]" {
		t.Errorf("the operations are %s", got)
	}
	typed, _ := send.New(sending{"a"}, stint.Priority(1))
	byName, err := invoice.New("send", sending{"a"}, stint.Priority(1))
	if diff := cmp.Diff(fmt.Sprintf("%+v", typed), fmt.Sprintf("%+v", byName)); diff != "" || err != nil {
		t.Errorf("chosen by its name it is another job: %v, %s", err, diff)
	}
}

func TestAnUnknownOperationIsRefusedWhereItsGroupIsKnown(t *testing.T) {
	invoice := stint.NewGroup("invoice")
	stint.NewOperation[int](invoice, "send")
	stint.NewOperation[int](invoice, "print")
	inner := stint.NewGroup("invoice.reminder")
	stint.NewOperation[int](inner, "first")
	var k kept
	plain := stint.NewClient(&k)
	client := plain.Declare(invoice).Declare(inner)
	for kind, want := range map[string]string{
		"invoice.send":           "",
		"invoice.reminder.first": "",
		"invoices.typo":          "",
		"other":                  "",
		"invoice.typo":           `kind: "invoice.typo" is no operation of invoice, which has: print, send`,
		"invoice.send.twice":     `kind: "invoice.send.twice" is no operation of invoice, which has: print, send`,
		"invoice":                `kind: "invoice" is a group: name one of its operations (print, send)`,
		"invoice.reminder.last":  `kind: "invoice.reminder.last" is no operation of invoice.reminder, which has: first`,
	} {
		k.jobs = nil
		_, err := client.Enqueue(t.Context(), stint.NewJob{Kind: kind})
		if want == "" && (err != nil || len(k.jobs) != 1) || want != "" && (!errors.Is(err, stint.ErrInvalid) || err.Error() != want || len(k.jobs) != 0) {
			t.Errorf("%s: %v, and %d jobs are stored", kind, err, len(k.jobs))
		}
		if _, err := plain.Enqueue(t.Context(), stint.NewJob{Kind: kind}); err != nil {
			t.Errorf("%s at a client that knows no group: %v", kind, err)
		}
	}
	k.jobs = nil
	if _, err := invoice.Enqueue(t.Context(), plain, "typo", 1); !errors.Is(err, stint.ErrInvalid) || len(k.jobs) != 0 {
		t.Errorf("the group itself: %v, and %d jobs are stored", err, len(k.jobs))
	}
	if _, err := invoice.Enqueue(t.Context(), plain, "send", 1); err != nil || len(k.jobs) != 1 || string(k.jobs[0].Args) != "1" {
		t.Errorf("the group itself: %v, and stored is %+v", err, k.jobs)
	}
}

func TestOperationsThatCanNeverBeRightPanic(t *testing.T) {
	g := stint.NewGroup("g")
	stint.NewOperation[int](g, "a")
	for what, f := range map[string]func(){
		"twice":         func() { stint.NewOperation[string](g, "a") },
		"a dot":         func() { stint.NewOperation[int](g, "b.c") },
		"no name":       func() { stint.NewOperation[int](g, "") },
		"a bad group":   func() { stint.NewGroup("") },
		"a bad default": func() { stint.NewGroup("h", stint.Delay(time.Second)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s did not panic", what)
				}
			}()
			f()
		}()
	}
}
