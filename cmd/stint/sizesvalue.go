package main

import (
	"fmt"
	"strconv"
	"strings"
)

// sizesValue is a flag that reads a number of bytes, or two with dots between
// them.
type sizesValue struct{ from, to int }

func (v *sizesValue) Set(text string) (err error) {
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		last = first
	}
	if v.from, err = parseArgsSize(first); err != nil {
		return err
	}
	if v.to, err = parseArgsSize(last); err != nil {
		return err
	}
	if v.from > v.to {
		return fmt.Errorf("%q ends before it begins", text)
	}
	return nil
}

// parseArgsSize reads how many bytes the arguments of a job of bench mix have.
func parseArgsSize(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < leastArgs || n > mostArgs {
		return 0, fmt.Errorf("%q is not a number of bytes between %d and %d", text, leastArgs, mostArgs)
	}
	return n, nil
}

func (v *sizesValue) Type() string { return "bytes" }

func (v *sizesValue) String() string {
	if v.from == v.to {
		return strconv.Itoa(v.from)
	}
	return fmt.Sprintf("%d..%d", v.from, v.to)
}
