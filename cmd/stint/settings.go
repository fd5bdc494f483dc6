package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
)

// envMark marks a flag with the environment variable that stands in for it.
const envMark = "stint_env"

// orEnv lets an environment variable stand in for a flag that is not given.
func orEnv(flags *pflag.FlagSet, variable string, names ...string) {
	for _, name := range names {
		flags.Lookup(name).Usage += " (env " + variable + ")"
		_ = flags.SetAnnotation(name, envMark, []string{variable})
	}
}

// variableOf is the environment variable that a flag most often has.
func variableOf(name string) string {
	return "STINT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// marked is the environment variable of a flag, if it has one.
func marked(f *pflag.Flag, mark string) string {
	if f == nil || len(f.Annotations[mark]) == 0 {
		return ""
	}
	return f.Annotations[mark][0]
}

// origin is where a setting comes from.
type origin struct {
	place string // before what is wrong with it
}

// readSettings sets the flags that were not given from the environment. An empty
// variable counts as none.
func (a *app) readSettings(flags *pflag.FlagSet) error {
	a.origins = map[string]origin{}
	var first error
	flags.VisitAll(func(f *pflag.Flag) {
		if first == nil {
			first = a.readSetting(f)
		}
	})
	return first
}

func (a *app) readSetting(f *pflag.Flag) error {
	variable := marked(f, envMark)
	if f.Changed {
		a.origins[f.Name] = origin{place: "--" + f.Name}
		return nil
	}
	if variable != "" && a.env(variable) != "" {
		a.origins[f.Name] = origin{place: variable + " in the environment"}
		if err := f.Value.Set(a.env(variable)); err != nil {
			return &usageError{&settingError{flag: f.Name, err: err}}
		}
	}
	return nil
}

// settingError says what is wrong with a setting, and begins with the place
// that it comes from: its flag, unless the app finds another one.
type settingError struct {
	flag, place string
	err         error
}

func (e *settingError) Error() string {
	return cmp.Or(e.place, "--"+e.flag) + ": " + problem(e.err, e.flag)
}

func (e *settingError) Unwrap() error { return e.err }

// problem leaves out a field that the place names already.
func problem(err error, name string) string {
	var invalid *stint.InvalidError
	if errors.As(err, &invalid) && invalid.Field == name {
		return invalid.Problem
	}
	return err.Error()
}

// settingf is a mistake in the value of a flag.
func settingf(flag, format string, args ...any) error {
	return &usageError{&settingError{flag: flag, err: fmt.Errorf(format, args...)}}
}

// placed gives what is wrong with a setting its place.
func (a *app) placed(err error) error {
	var setting *settingError
	if errors.As(err, &setting) && setting.place == "" {
		setting.place = a.origins[setting.flag].place
	}
	return err
}
