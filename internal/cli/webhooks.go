package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stint-go/stint/dashboard/link"
	"github.com/stint-go/stint/jobs/httpjob"
)

// webhookKey is the table of a file with the secrets that sign the requests of http jobs. There is no flag: other users
// may see command lines.
const webhookKey = "kinds.http.secrets"

// webhooks is what a file says about them.
type webhooks struct {
	secrets map[string]httpjob.Secret // by the receiver's host
	shown   []shownSetting
}

func (w *webhooks) read(e entry) error {
	w.secrets = map[string]httpjob.Secret{}
	err := setParts(e, `a table: {"hooks.example.com" = "whsec_..."}`, "a string", func(host, text string) (err error) {
		if host == "" || strings.ContainsAny(host, "/@ ") || host != strings.ToLower(host) {
			return fmt.Errorf(`%q is not a host, such as hooks.example.com or hooks.example.com:8443, in lower case, or "*" for all others`, host)
		}
		w.secrets[host], err = httpjob.ParseSecret(text)
		if err != nil {
			err = withHint(errors.New(problem(err, "secret")), "echo whsec_$(openssl rand -base64 32) makes a good one")
		}
		return err
	})
	if err != nil {
		return err
	}
	parts, err := e.parts()
	for _, part := range parts {
		w.shown = append(w.shown, shownSetting{part.key, "***", fmt.Sprintf("%s:%d", e.file.path, part.line)})
	}
	return err
}

// httpConfig says how http jobs are performed.
func (a *app) httpConfig(f *engineFlags) (httpjob.Config, error) {
	c := httpjob.Config{AllowPrivate: f.httpPrivate, Secrets: a.webhooks.secrets}
	if f.httpCallback == "" {
		return c, nil
	}
	secret, err := a.linkKey()
	if err != nil {
		return c, err
	}
	if secret == "" {
		return c, withHint(settingf("http-callback", "there is no key to sign the URLs"),
			"set %s, or link-key in the table [dashboard] of the file of settings, here and at the dashboard; openssl rand -hex 16 makes a good one", linkVariable)
	}
	key, err := link.NewKey(secret)
	if err != nil {
		return c, err
	}
	if c.Callback, err = key.Callbacks(f.httpCallback); err != nil {
		return c, settingf("http-callback", "%s", problem(err, "base"))
	}
	return c, nil
}
