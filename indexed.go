package stint

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/stint-go/stint/internal/redact"
	"github.com/stint-go/stint/internal/valid"
)

// Indexed makes a kind's jobs found by an argument, however many there are: the value that a JSON pointer selects becomes
// a tag with the names that lead to it. The search of the dashboard finds it as args.customer.id = 7, and everything that
// looks for tags as customer.id=7:
//
//	var Ship = stint.NewKind[Order]("ship", stint.Indexed("/order", "/customer/id"))
//
// Texts, numbers and booleans are indexed. Null, an array, an object, a text that can be no tag (empty, longer than 255
// bytes, with control characters) and what is absent are not, and the job is enqueued all the same. [NewKind] panics if
// the type of the arguments has no member of the name. Like all tags they are shown to everyone, so what is [Sealed] or
// redacted ([Redact]) is refused with [ErrInvalid]. A job has at most 50 tags, these included.
//
// The program that enqueues adds the tag. Those in other languages, and by SQL, say it themselves: tags => '{order=4711}'.
func Indexed(pointers ...string) Option {
	return func(j *NewJob) { j.Indexed = slices.Clone(pointers) }
}

// checkIndexed checks what the job says of its index.
func (j NewJob) checkIndexed() error {
	for _, pointer := range j.Indexed {
		if err := checkPointer("indexed", pointer); err != nil {
			return err
		}
		if strings.ContainsAny(pathOf(pointer), "= \t\n") || strings.Count(pathOf(pointer), ".") != strings.Count(pointer, "/")-1 {
			return valid.Invalid("indexed", "%s has a name with a dot, a space or an equals sign, which no search can say", pointer)
		}
		overlaps := func(part string) bool { return redact.Overlap(pointer, part) }
		if slices.ContainsFunc(j.Sealed, overlaps) || slices.ContainsFunc(j.Redacted, overlaps) {
			return valid.Invalid("indexed", "a tag with %s would show what is sealed or redacted", pointer)
		}
	}
	return nil
}

// pathOf is a pointer as a search writes it: customer.id.
func pathOf(pointer string) string {
	return unescaped(strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", "."))
}

// index adds a tag for each argument that is indexed.
func (j *NewJob) index() {
	if len(j.Indexed) == 0 || len(j.Args) == 0 {
		return
	}
	var all any
	d := json.NewDecoder(bytes.NewReader(j.Args))
	d.UseNumber()
	if d.Decode(&all) != nil {
		return // which the check says
	}
	for _, pointer := range j.Indexed {
		if checkPointer("", pointer) != nil {
			continue // so does this
		}
		found, _ := pointed(all, pointer)
		var text string
		switch v := found.(type) {
		case string:
			text = v
		case json.Number:
			text = v.String()
		case bool:
			text = strconv.FormatBool(v)
		}
		if tag := pathOf(pointer) + "=" + text; text != "" && valid.Name("", tag) == nil {
			Tag(tag)(j)
		}
	}
}
