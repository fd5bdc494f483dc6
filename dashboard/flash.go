package dashboard

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/stint-go/stint"
)

// flash is what the page after a form says of it, once.
type flash struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
	Link string `json:"link,omitempty"` // where to look, below the dashboard's path
	Word string `json:"word,omitempty"` // of the link
}

// to links to a job.
func (f *flash) to(id stint.ID) { f.Link, f.Word = "/jobs/"+id.String(), "job "+id.String() }

const (
	flashCookie = "stint_flash"
	maxFlash    = 2000 // bytes of its text: a cookie holds 4,096
)

// setFlash keeps it for the next page.
func (b *Dashboard) setFlash(w http.ResponseWriter, r *http.Request, f flash) {
	if len(f.Text) > maxFlash {
		f.Text = f.Text[:maxFlash] + "…"
	}
	text, _ := json.Marshal(f) // strings and a bool
	b.flashCookie(w, r, base64.RawURLEncoding.EncodeToString(text), 60)
}

// takeFlash returns what was kept, and forgets it.
func (b *Dashboard) takeFlash(w http.ResponseWriter, r *http.Request) *flash {
	c, err := r.Cookie(flashCookie)
	if err != nil {
		return nil
	}
	b.flashCookie(w, r, "", -1)
	text, err := base64.RawURLEncoding.DecodeString(c.Value)
	var f flash
	if err != nil || json.Unmarshal(text, &f) != nil || len(f.Link) > 0 && !isLocal(f.Link) {
		return nil
	}
	return &f
}

func (b *Dashboard) flashCookie(w http.ResponseWriter, r *http.Request, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: flashCookie, Value: value, MaxAge: age, Path: b.config.Path + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}

// isLocal reports whether an address is one of this server's: a path, and no
// beginning that a browser takes for another host. Browsers leave tabs and ends of
// lines out of an address before they read it, so that one with such is none.
func isLocal(to string) bool {
	if strings.ContainsFunc(to, func(r rune) bool { return r < ' ' }) {
		return false
	}
	return len(to) > 0 && to[0] == '/' && (len(to) == 1 || to[1] != '/' && to[1] != '\\')
}
