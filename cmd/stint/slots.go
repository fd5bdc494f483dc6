package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stint-go/stint"
)

// slotsValue is a flag that reads a number, or one for each of some queues.
type slotsValue struct {
	all  int
	each map[string]int
}

func (s *slotsValue) Set(text string) error {
	*s = slotsValue{}
	if !strings.Contains(text, "=") {
		n, err := parseSlots(text)
		s.all = n
		return err
	}
	for part := range strings.SplitSeq(text, ",") {
		i := strings.LastIndexByte(part, '=')
		if i < 0 {
			return fmt.Errorf("%q has no number; write for example mail=4,default=20", part)
		}
		n, err := parseSlots(part[i+1:])
		if err != nil {
			return err
		}
		if err := s.SetPart(strings.TrimSpace(part[:i]), int64(n)); err != nil {
			return err
		}
	}
	return nil
}

// SetPart adds the slots of a queue.
func (s *slotsValue) SetPart(queue string, n int64) error {
	if queue != "*" {
		if err := stint.CheckName("queue", queue); err != nil {
			return err
		}
	}
	if _, twice := s.each[queue]; twice {
		return fmt.Errorf("the queue %s is there twice", queue)
	}
	if n < 1 {
		return fmt.Errorf("%d is too few", n)
	}
	if s.each == nil {
		s.each = map[string]int{}
	}
	s.each[queue] = int(min(n, math.MaxInt32)) // where numbers are small, it stays too many
	return nil
}

func parseSlots(text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0, fmt.Errorf("%q is not a number; write 50, or mail=4,default=20", text)
	}
	if n < 1 {
		return 0, fmt.Errorf("%d is too few", n)
	}
	return n, nil
}

func (s *slotsValue) Type() string { return "slots" }

func (s *slotsValue) String() string {
	if s.each == nil {
		if s.all == 0 {
			return ""
		}
		return strconv.Itoa(s.all)
	}
	var parts []string
	for _, queue := range slices.Sorted(maps.Keys(s.each)) {
		parts = append(parts, fmt.Sprintf("%s=%d", queue, s.each[queue]))
	}
	return strings.Join(parts, ",")
}
