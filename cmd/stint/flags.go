package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

// arguments checks how many there are, by the names that the help gives them;
// the first least of them are needed. A last name with dots behind it stands for
// any number.
func arguments(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		var err error
		switch {
		case len(args) < least:
			err = usagef("%s is missing", strings.TrimSuffix(names[len(args)], "..."))
		case len(args) > len(names) && !strings.HasSuffix(strings.Join(names, " "), "..."):
			err = usagef("%q is one argument too many", args[len(names)])
			if took := tookForArgument(cmd.Flags().Lookup("log-sql"), args); took != "" {
				return withHint(err, "the time stands behind an equals sign: --log-sql=%s", took)
			}
		default:
			return nil
		}
		return withHint(err, "it is used as: %s", cmd.UseLine())
	}
}

// tookForArgument finds what was meant as the value of a flag that may also have
// none, and so takes none that stands apart.
func tookForArgument(f *pflag.Flag, args []string) string {
	if f == nil || !f.Changed || f.Value.String() != f.NoOptDefVal {
		return ""
	}
	for _, arg := range args {
		if _, err := retry.ParseDuration(arg); err == nil {
			return arg
		}
	}
	return ""
}

// retryValue is a flag that reads a retry policy.
type retryValue struct {
	text   string
	policy retry.Policy
}

func (r *retryValue) Set(text string) error {
	p, err := retry.Parse(text)
	r.text, r.policy = text, p
	return err
}

func (r *retryValue) Type() string   { return "policy" }
func (r *retryValue) String() string { return r.text }

// listValue is a flag with names separated by commas. Given again, it adds.
type listValue struct {
	names *[]string
	field string
}

func (l listValue) Set(text string) error {
	names := strings.Split(text, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return l.SetList(names)
}

// SetList adds names as they are.
func (l listValue) SetList(names []string) error {
	for _, name := range names {
		if err := stint.CheckName(l.field, name); err != nil {
			return err
		}
		if !slices.Contains(*l.names, name) {
			*l.names = append(*l.names, name)
		}
	}
	return nil
}

func (l listValue) Type() string { return "names" }

func (l listValue) String() string {
	if l.names == nil {
		return ""
	}
	return strings.Join(*l.names, ",")
}

// choiceValue is a flag that is one of a few words.
type choiceValue struct {
	value   *string
	choices []string
}

func choiceFlag(flags *pflag.FlagSet, p *string, name, value, usage string, choices ...string) {
	*p = value
	flags.Var(choiceValue{p, choices}, name, usage+": "+strings.Join(choices, ", "))
}

func (c choiceValue) Set(text string) error {
	if !slices.Contains(c.choices, text) {
		return fmt.Errorf("%q is not one of %s", text, strings.Join(c.choices, ", "))
	}
	*c.value = text
	return nil
}

func (c choiceValue) Type() string { return "word" }

func (c choiceValue) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

// pairValue is a flag of the form NAME=VALUE that may be given many times.
type pairValue struct {
	pairs     *map[string]string
	separator string
	example   string
}

func (p pairValue) Set(text string) error {
	name, value, ok := strings.Cut(text, p.separator)
	if !ok {
		return fmt.Errorf("%q has no %q; write for example %s", text, p.separator, p.example)
	}
	if *p.pairs == nil {
		*p.pairs = map[string]string{}
	}
	if p.separator == ":" { // as in a header, where people put space
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	}
	(*p.pairs)[name] = value
	return nil
}

func (p pairValue) Type() string   { return "pair" }
func (p pairValue) String() string { return "" }
