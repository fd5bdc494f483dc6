package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stint-go/stint/bench/contest"
)

func TestEveryoneWorksEveryJobOnceAndKeepsItsHistory(t *testing.T) {
	dir := t.TempDir()
	var out, errs bytes.Buffer
	if err := run(t.Context(), []string{"--sqlite-dir", dir, "--jobs", "100", "--runs", "1", "--json"}, &out, &errs); err != nil {
		t.Fatal(err)
	}
	var r contest.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	standings := r.Results[0].Standings
	if len(standings) != 3 {
		t.Errorf("%d took part", len(standings))
	}
	for _, s := range standings {
		if s.Medians["work/s"] <= 0 || s.Medians["enqueue/s"] <= 0 {
			t.Errorf("%s has the figures %v", s.Name, s.Medians)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v were left behind, %v", left, err)
	}
}

func TestMistakesOnTheCommandLineAreNamed(t *testing.T) {
	for line, want := range map[string]string{
		"--runs 0": "--runs: 0 is less than 1",
		"--jobs 0": "--jobs: 0 is less than 1",
		"burn":     `"burn" is no flag`,
	} {
		err := run(t.Context(), strings.Fields(line), &bytes.Buffer{}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", line, err, want)
		}
	}
}
