package stint_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
)

type parcel struct {
	Order    int            `json:"order"`
	Express  bool           `json:"express"`
	Weight   *float64       `json:"weight"`
	Customer parcelCustomer `json:"customer"`
}

type parcelCustomer struct {
	ID    string   `json:"id"`
	Notes []string `json:"notes"`
}

func TestIndexedArgumentsAreTags(t *testing.T) {
	kind := stint.NewKind[parcel]("ship", stint.Tag("money"), stint.Indexed("/order", "/express", "/weight", "/customer/id", "/customer/notes", "/customer/notes/0"))
	light := 1.5
	for _, c := range []struct {
		args parcel
		opts []stint.Option
		want []string
	}{
		{parcel{Order: 4711}, nil, []string{"money", "order=4711", "express=false"}},
		{parcel{Order: -1, Express: true, Weight: &light, Customer: parcelCustomer{"ann b", []string{"x=y", "z"}}}, []stint.Option{stint.Tag("vip", "order=-1")},
			[]string{"money", "vip", "order=-1", "express=true", "weight=1.5", "customer.id=ann b", "customer.notes.0=x=y"}},
		{parcel{Customer: parcelCustomer{ID: strings.Repeat("x", 255)}}, nil, []string{"money", "order=0", "express=false"}}, // too long
		{parcel{Customer: parcelCustomer{ID: "a\nb"}}, nil, []string{"money", "order=0", "express=false"}},
	} {
		job, err := kind.New(c.args, c.opts...)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(job.Tags, c.want) {
			t.Errorf("%+v has the tags %q, want %q", c.args, job.Tags, c.want)
		}
		if err := job.Check(stint.Limits{}); err != nil {
			t.Error(err)
		}
	}
	if tags := kind.Declaration().Tags; !slices.Equal(tags, []string{"money"}) {
		t.Errorf("the kind has the tags %q", tags)
	}
	s := kind.Schedule("daily", cron.MustParse("0 3 * * *"), parcel{Order: 7})
	if !slices.Contains(s.Job.Tags, "order=7") {
		t.Errorf("jobs of a schedule have the tags %q", s.Job.Tags)
	}
}

func TestWhatCannotBeIndexedIsRefused(t *testing.T) {
	for name, make := range map[string]func() stint.Kind[parcel]{
		"no pointer":      func() stint.Kind[parcel] { return stint.NewKind[parcel]("k", stint.Indexed("order")) },
		"everything":      func() stint.Kind[parcel] { return stint.NewKind[parcel]("k", stint.Indexed("")) },
		"a misspelt name": func() stint.Kind[parcel] { return stint.NewKind[parcel]("k", stint.Indexed("/oder")) },
		"what is sealed": func() stint.Kind[parcel] {
			return stint.NewKind[parcel]("k", stint.Sealed("/customer"), stint.Indexed("/customer/id"))
		},
		"what is redacted": func() stint.Kind[parcel] {
			return stint.NewKind[parcel]("k", stint.Redact("/customer/id"), stint.Indexed("/customer/id"))
		},
		"all is redacted": func() stint.Kind[parcel] { return stint.NewKind[parcel]("k", stint.Redact(), stint.Indexed("/order")) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is indexed", name)
				}
			}()
			make()
		}()
	}
	for _, pointer := range []string{"/a.b", "/a b", "/a=b"} {
		job := stint.KindInfo{Name: "k"}.Job([]byte(`{}`), stint.Indexed(pointer))
		if err := job.Check(stint.Limits{}); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("%q: %v", pointer, err)
		}
	}
}
