package retry_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stint-go/stint/retry"
)

// errors.New gives the same type to every error of a text: a policy for that
// type would be about whatever happens to go wrong.
func TestATypeThatTellsNothingIsNoClass(t *testing.T) {
	for _, class := range []string{"errors.errorString", "*errors.errorString", "fmt.wrapError", "*fmt.wrapErrors", "errors.joinError", "errors.fundamental"} {
		for form, p := range map[string]retry.Policy{
			"only":   retry.Default().Only("timeout", class),
			"except": retry.Default().Except(class),
			"on":     retry.ByError(retry.On(class, retry.None())),
		} {
			err := p.Validate()
			if !errors.Is(err, retry.ErrInvalid) || !strings.Contains(err.Error(), `retry.ErrorClass("no_rows", sql.ErrNoRows)`) {
				t.Errorf("%s %s: %v, want advice to declare a class", form, class, err)
			}
		}
		if _, err := retry.Parse("fixed:1:1s,only=" + class); err == nil {
			t.Errorf("%s was read from text", class)
		}
		var p retry.Policy
		if err := p.UnmarshalJSON([]byte(`{"policy":"by_error","cases":[{"class":"` + class + `","then":"none"}]}`)); err == nil {
			t.Errorf("%s was read from JSON", class)
		}
		if retry.CheckClass(class) == nil {
			t.Errorf("%s passes as a class", class)
		}
	}
	for _, class := range []string{"timeout", "net.OpError", "*fs.PathError", "my.errorString"} {
		if err := errors.Join(retry.CheckClass(class), retry.Default().Only(class).Validate()); err != nil {
			t.Error(err)
		}
	}
}
