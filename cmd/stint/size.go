package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// sizeValue is a flag that reads a number of bytes with a unit.
type sizeValue int64

// sizes are units, the larger ones first; those with an i are powers of 1024.
var sizes = []struct {
	name string
	size float64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3},
}

func (s *sizeValue) Set(text string) error {
	for _, unit := range sizes {
		number, ok := strings.CutSuffix(strings.ToLower(text), strings.ToLower(unit.name))
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		switch bytes := n * unit.size; {
		case err != nil || math.IsNaN(n):
			return fmt.Errorf("%q is not a number of %s; write for example 512MiB", text, unit.name)
		case bytes < 1:
			return fmt.Errorf("%q is too little", text)
		case bytes >= math.MaxInt64:
			return fmt.Errorf("%q is too much", text)
		default:
			*s = sizeValue(bytes)
		}
		return nil
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return fmt.Errorf("%q has no unit; write for example %sMiB", text, text)
	}
	return fmt.Errorf("%q is not a size; write for example 512MiB or 1GB", text)
}

func (s *sizeValue) Type() string { return "size" }

func (s *sizeValue) String() string {
	if *s == 0 {
		return ""
	}
	least, name := float64(*s)/(1<<10), "KiB"
	for _, unit := range sizes {
		if n := float64(*s) / unit.size; n == math.Trunc(n) && (n < least || least != math.Trunc(least)) {
			least, name = n, unit.name
		}
	}
	return strconv.FormatFloat(least, 'f', -1, 64) + name
}
