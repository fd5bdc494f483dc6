package prom

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

const module = "github.com/stint-go/stint"

// BuildInfo returns a collector of stint_build_info, which is 1: its labels have the version of
// stint that is in the program, and that of Go.
func BuildInfo() prometheus.Collector {
	version := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == module {
				version = strings.Trim(cmp.Or(m.Replace, m).Version, "()")
			}
		}
	}
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stint_build_info", Help: "Always 1: the version of stint that the program has, and that of Go.",
		ConstLabels: prometheus.Labels{"version": cmp.Or(version, "unknown"), "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}
