package view

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestAnArgumentIsFoundByItsPathAndValue(t *testing.T) {
	const args = `{"order": 4711, "customer": {"id": "7", "vip": true, "name": "a = b", "note": ""}, "items": [{"sku": "x1"}, null], "args.x=1": 2}`
	for text, want := range map[string]bool{
		"args.order = 4711": true, "args.order=4711": true, `args.order="4711"`: true, " args.order = 4711 ": true, "args.order = 471": false, "args.order = 47110": false,
		"args.customer.id=7": true, `args.customer.id = "7"`: true, "args.customer.vip=true": true, "args.customer.vip=false": false, "args.customer = {": false,
		"args.customer.name = a = b": true, "args.items.0.sku = x1": true, "args.items.1 = null": true, "args.items.2 = x": false, "args.items.-1=x": false, "args.none = 1": false, `args.none = ""`: false, `args.customer = ""`: false, `args.customer.note = ""`: true, "args.none=null": false,
		"4711": true, "471": true, `"sku": "x1"`: true, "args.x=": true, "args. = 1": false, "none": false,
	} {
		if got := holds(text)([]byte(args)); got != want {
			t.Errorf("%q fits: %v", text, got)
		}
	}
}

// What a text names is found in arguments that have it, and in no others.
func FuzzArgument(f *testing.F) {
	for _, text := range []string{"args.order = 4711", `args.a.b="c"`, "args.x", "args.a=", "a=b", "args.a.0 = null", "args..a=1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys, value, ok := parseArgument(text)
		if !ok {
			return
		}
		if len(keys) == 0 || !strings.HasPrefix(strings.TrimSpace(text), "args."+keys[0]) {
			t.Fatalf("%q leads to %q", text, keys)
		}
		var of any = value
		for i := len(keys) - 1; i >= 0; i-- {
			of = map[string]any{keys[i]: of}
		}
		args, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		if json.Unmarshal(args, new(map[string]any)) == nil && strings.ToValidUTF8(text, "") == text && !holds(text)(args) {
			t.Errorf("%q does not fit %s", text, args)
		}
		if holds(text)([]byte(`{}`)) {
			t.Errorf("%q fits nothing", text)
		}
	})
}

func TestAnEditedJobHasTheTagsOfItsNewArguments(t *testing.T) {
	was := json.RawMessage(`{"order":4711,"customer":{"id":"c7"},"a~/b":1,"list":["x"]}`)
	tags := []string{"vip", "order=4711\r", "order=12", "customer.id=c7", "a~/b=1", "list.0=x", "other=1"}
	for is, want := range map[string][]string{
		string(was):                        {"vip", "order=4711", "order=12", "customer.id=c7", "a~/b=1", "list.0=x", "other=1"},
		`{"order":12,"customer":{"id":8}}`: {"vip", "order=12", "customer.id=8", "other=1"},
		`{"order":null,"customer":{"id":""},"a~/b":"` + strings.Repeat("x", 255) + `","list":[[]]}`: {"vip", "order=12", "other=1"},
		`{"order":`: {"vip", "order=12", "other=1"}, // which is refused
	} {
		if got := Retagged(tags, was, json.RawMessage(is)); !slices.Equal(got, want) {
			t.Errorf("of %s the tags are %q, want %q", is, got, want)
		}
	}
}
