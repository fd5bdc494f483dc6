package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
)

// A setting is a flag that may also stand in the environment or in a file. The
// flag's value reads all three, so what it refuses it refuses everywhere; the
// marks on the flag say where else to look.
const (
	envMark  = "stint_env"
	fileMark = "stint_file"
)

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

// orFile lets a key of a file stand in for a flag that is given in neither way.
func orFile(flags *pflag.FlagSet, key, name string) {
	_ = flags.SetAnnotation(name, fileMark, []string{key})
}

// elsewhere lets flags stand in the environment, and in a table of a file; without
// a name that is the file's top.
func elsewhere(flags *pflag.FlagSet, table string, names ...string) {
	for _, name := range names {
		orEnv(flags, variableOf(name), name)
		orFile(flags, below(table, name), name)
	}
}

// marked is the environment variable or the key of a flag, if it has one.
func marked(f *pflag.Flag, mark string) string {
	if f == nil || len(f.Annotations[mark]) == 0 {
		return ""
	}
	return f.Annotations[mark][0]
}

// allSettings are all flags that a file may hold, whichever command they are of,
// in the order in which people are told of them.
func allSettings() *pflag.FlagSet {
	flags := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	new(databaseFlags).add(flags)
	new(engineFlags).add(flags)
	return flags
}

// origin is where a setting comes from.
type origin struct {
	from  string // for people who look: --slots, STINT_SLOTS, stint.toml:3
	place string // the same before what is wrong with it
	file  bool
}

// readSettings sets the flags that were not given: from the environment, or else
// from the file, whose whole content is checked first. An empty variable counts
// as none.
func (a *app) readSettings(flags *pflag.FlagSet) error {
	a.origins = map[string]origin{}
	if err := a.readSetting(flags.Lookup("config"), nil); err != nil {
		return err
	}
	var file *settingsFile
	if _, given := a.origins["config"]; given {
		var err error
		if file, err = readFile(a.config); err != nil {
			return err
		}
		a.schedules, a.admission = file.schedules, file.admission
	}
	var first error
	flags.VisitAll(func(f *pflag.Flag) {
		if first == nil {
			first = a.readSetting(f, file)
		}
	})
	return first
}

func (a *app) readSetting(f *pflag.Flag, file *settingsFile) error {
	variable := marked(f, envMark)
	if f.Changed {
		a.origins[f.Name] = origin{from: "--" + f.Name, place: "--" + f.Name}
		return nil
	}
	if variable != "" && a.env(variable) != "" {
		a.origins[f.Name] = origin{from: variable, place: variable + " in the environment"}
		if err := f.Value.Set(a.env(variable)); err != nil {
			return &usageError{&settingError{flag: f.Name, err: err}}
		}
		return nil
	}
	if e, ok := file.entry(marked(f, fileMark)); ok {
		a.origins[f.Name] = origin{from: fmt.Sprintf("%s:%d", e.file, e.line), place: e.place(), file: true}
		return e.set(f.Value)
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

// byFlag says of what is wrong with a field which flag said it, if one did.
func byFlag(flags *pflag.FlagSet, err error) error {
	var (
		invalid *stint.InvalidError
		hinted  *hintedError
	)
	if !errors.As(err, &invalid) || errors.As(err, &hinted) {
		return err
	}
	f := flags.Lookup(strings.ReplaceAll(invalid.Field, " ", "-"))
	if f == nil || !f.Changed {
		return err
	}
	return &usageError{&settingError{flag: f.Name, err: errors.New(invalid.Problem)}}
}

// placed gives what is wrong with a setting its place.
func (a *app) placed(err error) error {
	var setting *settingError
	if errors.As(err, &setting) && setting.place == "" {
		setting.place = a.origins[setting.flag].place
	}
	return err
}
