package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// entry is a setting in a file, or a part of one that is a table.
type entry struct {
	file  string
	line  int
	key   string // from the top of the file
	name  string // in its table
	value any
	parts []entry // of a table, in the order of their lines
}

// place is what an error about the entry begins with.
func (e entry) place() string { return fmt.Sprintf("%s:%d: %s", e.file, e.line, e.key) }

// refuse says what is wrong with the entry; nil for nothing.
func (e entry) refuse(err error) error {
	if err == nil {
		return nil
	}
	return &usageError{&settingError{flag: e.name, place: e.place(), err: err}}
}

// listValue, slotsValue and retentionValue take more than text: a list, in which a
// name may hold a comma, and a table of numbers or of texts, one part after the
// other.
type (
	takesList  interface{ SetList(names []string) error }
	takesTable interface {
		SetPart(name string, n int64) error
	}
	takesAny   interface{ SetAny(value any) error }
	takesTexts interface{ SetText(name, text string) error }
)

// set gives a flag what stands in the file. TOML knows types, and a file is held
// to them: a number in quotes is none.
func (e entry) set(v pflag.Value) error {
	if some, ok := v.(takesAny); ok {
		return e.refuse(some.SetAny(e.value))
	}
	list, isList := v.(takesList)
	table, isTable := v.(takesTable)
	texts, isTexts := v.(takesTexts)
	isBool := v.Type() == "bool"
	switch x := e.value.(type) {
	case string:
		if !isList && !isTable && !isBool && v.Type() != "int" {
			return e.refuse(v.Set(x))
		}
	case bool:
		if isBool {
			return e.refuse(v.Set(strconv.FormatBool(x)))
		}
	case int64:
		if isTable || v.Type() == "int" {
			return e.refuse(v.Set(strconv.FormatInt(x, 10)))
		}
	case []any:
		if isList {
			return e.setList(list)
		}
	case map[string]any:
		if isTable {
			return e.setTable(table)
		}
		if isTexts {
			return e.setTexts(texts)
		}
	}
	form := cmp.Or(forms[v.Type()], "a string")
	if own, ok := v.(interface{ Form() string }); ok {
		form = own.Form()
	}
	return e.refuse(fmt.Errorf("it is %s; write %s", formOf(e.value), form))
}

func (e entry) setList(v takesList) error {
	var names []string
	for _, item := range e.value.([]any) {
		name, ok := item.(string)
		if !ok {
			return e.refuse(fmt.Errorf("there is %s in it; write %s", formOf(item), forms["names"]))
		}
		names = append(names, name)
	}
	if names == nil {
		return e.refuse(errors.New("it is empty"))
	}
	return e.refuse(v.SetList(names))
}

func (e entry) setTable(v takesTable) error {
	if len(e.parts) == 0 {
		return e.refuse(errors.New("it is empty"))
	}
	for _, part := range e.parts {
		n, ok := part.value.(int64)
		if !ok {
			return part.refuse(fmt.Errorf("it is %s; write a number", formOf(part.value)))
		}
		if err := v.SetPart(part.name, n); err != nil {
			return part.refuse(err)
		}
	}
	return nil
}

func (e entry) setTexts(v takesTexts) error {
	if len(e.parts) == 0 {
		return e.refuse(errors.New("it is empty"))
	}
	for _, part := range e.parts {
		text, ok := part.value.(string)
		if !ok {
			return part.refuse(fmt.Errorf("it is %s; write a string", formOf(part.value)))
		}
		if err := v.SetText(part.name, text); err != nil {
			return part.refuse(err)
		}
	}
	return nil
}

// forms are how values are written in a file, by the types of flags; those that
// are missing are strings.
var forms = map[string]string{
	"bool":     "true or false",
	"int":      "a number",
	"duration": `a string: "90s"`,
	"time":     `a string: "2s"`,
	"size":     `a string: "512MiB"`,
	"names":    `an array of strings: ["mail", "default"]`,
	"ages":     `a string, "5d", or a table: {failed = "30d", "mail:completed" = "1h"}`,
	"slots":    `a number, or a table: {mail = 4, "*" = 8}`,
}

// formOf names what stands in a file.
func formOf(value any) string {
	switch value.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64:
		return "a number"
	case float64:
		return "a number with a fraction"
	case []any:
		return "an array"
	case map[string]any:
		return "a table"
	}
	return "a date or a time"
}
