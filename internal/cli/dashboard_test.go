package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/stint-go/stint/dashboard/guard"
)

func TestWhoGetsInFollowsFromWhoCanReachTheDashboard(t *testing.T) {
	const mine = "a-secret-of-many-characters"
	named := admission{tokens: []guard.Token{guard.NewToken("ci", guard.Admin, mine)}}
	for name, c := range map[string]struct {
		flags    dashboardFlags
		env      string
		named    admission
		stranger guard.Role
		link     bool
		fresh    bool
		refused  bool
	}{
		"this machine alone":                {flags: dashboardFlags{address: "127.0.0.1:7070"}, stranger: guard.Viewer, link: true, fresh: true},
		"by its name":                       {flags: dashboardFlags{address: "localhost:7070"}, stranger: guard.Viewer, link: true, fresh: true},
		"of version six":                    {flags: dashboardFlags{address: "[::1]:7070"}, stranger: guard.Viewer, link: true, fresh: true},
		"with a secret that was chosen":     {flags: dashboardFlags{address: "127.0.0.1:7070"}, env: mine, stranger: guard.Viewer, link: true},
		"with somebody who was named":       {flags: dashboardFlags{address: "127.0.0.1:7070"}, named: named, link: true, fresh: true},
		"to look only":                      {flags: dashboardFlags{address: "127.0.0.1:7070", readOnly: true}, stranger: guard.Viewer},
		"behind a proxy":                    {flags: dashboardFlags{address: "127.0.0.1:7070", hosts: []string{"a.example"}}, refused: true},
		"behind a proxy, with somebody":     {flags: dashboardFlags{address: "127.0.0.1:7070", hosts: []string{"a.example"}}, named: named},
		"others":                            {flags: dashboardFlags{address: "192.0.2.1:7070"}, refused: true},
		"others, to look only":              {flags: dashboardFlags{address: "192.0.2.1:7070", readOnly: true}, refused: true},
		"others, by a name":                 {flags: dashboardFlags{address: "jobs.example.com:7070"}, refused: true},
		"others, with somebody":             {flags: dashboardFlags{address: "192.0.2.1:7070"}, named: named},
		"others, with a secret":             {flags: dashboardFlags{address: "192.0.2.1:7070"}, env: mine, link: true},
		"all, by no name":                   {flags: dashboardFlags{address: ":7070"}, named: named, refused: true},
		"all of version six, by no name":    {flags: dashboardFlags{address: "[::]:7070"}, named: named, refused: true},
		"all, by a name":                    {flags: dashboardFlags{address: ":7070", hosts: []string{"a.example"}}, named: named},
		"this machine, seen as version six": {flags: dashboardFlags{address: "[::ffff:127.0.0.1]:7070"}, stranger: guard.Viewer, link: true, fresh: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := &app{env: func(name string) string { return map[string]string{secretVariable: c.env}[name] }, admission: c.named}
			g, fresh, err := a.admit(&c.flags, &a.admission)
			if (err != nil) != c.refused {
				t.Fatalf("it was refused with %v", err)
			}
			if err != nil {
				return
			}
			if g.Stranger != c.stranger || (g.Link != "") != c.link || (fresh != "") != c.fresh {
				t.Errorf("a stranger is %v, there is a link: %v, which nobody has yet: %v", g.Stranger, g.Link != "", fresh != "")
			}
			if _, err := guard.New(g); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheSecretOfALinkIsAnotherEachTime(t *testing.T) {
	if a, b := newSecret(), newSecret(); a == b || len(a) < 26 {
		t.Errorf("%s and %s", a, b)
	}
}

func TestAllThatIsReadOnlyMakesViewers(t *testing.T) {
	c := admission{
		tokens: []guard.Token{guard.NewToken("ci", guard.Admin, "x")}, users: []guard.User{{Role: guard.Operator}},
		proxy: guard.Proxy{Roles: map[string]guard.Role{"ann": guard.Admin}, Others: guard.Operator},
	}
	g := viewersOnly(c.guard())
	for _, role := range []guard.Role{g.Tokens[0].Role, g.Users[0].Role, g.Proxy.Roles["ann"], g.Proxy.Others} {
		if role != guard.Viewer {
			t.Errorf("somebody is %v", role)
		}
	}
	if c.tokens[0].Role != guard.Admin || c.proxy.Roles["ann"] != guard.Admin {
		t.Error("what the file says was changed")
	}
}

// What the settings let pass the guard lets pass too, and nothing that it does not.
func TestAHashIsTooCheapForTheSettingsAndForTheGuardAlike(t *testing.T) {
	for _, cost := range []int{leastCost - 1, leastCost} {
		hash, err := bcrypt.GenerateFromPassword([]byte("correct horse"), cost)
		if err != nil {
			t.Fatal(err)
		}
		_, guarded := guard.New(guard.Config{Users: []guard.User{{Name: "ann", Role: guard.Viewer, Hash: string(hash)}}})
		if set := checkBcrypt(string(hash)); (set == nil) != (guarded == nil) || (set == nil) != (cost >= leastCost) {
			t.Errorf("of cost %d the settings say %v and the guard %v", cost, set, guarded)
		}
	}
}

// certificate writes a new certificate with its key into a file.
func certificate(t *testing.T, file, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestACertificateIsReadAgainWhenItsFileChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.pem")
	certificate(t, file, "one")
	c, err := (&dashboardFlags{certFile: file}).certificates()
	if err != nil {
		t.Fatal(err)
	}
	c.files.log = slog.New(slog.DiscardHandler)
	shows := func(when, want string) {
		t.Helper()
		c.looked = time.Time{} // long ago
		pair, err := c.get(nil)
		if err != nil || pair.Leaf.Subject.CommonName != want {
			t.Errorf("%s %s is shown, and %v", when, pair.Leaf.Subject.CommonName, err)
		}
	}
	shows("at first", "one")
	later := func(hours time.Duration) {
		t.Helper()
		at := time.Now().Add(hours * time.Hour)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	certificate(t, file, "two")
	later(1)
	shows("after a change", "two")
	if err := os.WriteFile(file, []byte("half a certif"), 0o600); err != nil {
		t.Fatal(err)
	}
	later(2)
	shows("while it is written", "two")
	certificate(t, file, "three")
	later(3)
	shows("when it was written", "three")
}

func TestBeforeTheDatabaseIsThereOnlyProbesAreAnswered(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.pem")
	certificate(t, file, "localhost")
	a := &app{env: func(string) string { return "" }}
	d, err := a.listenDashboard(&dashboardFlags{address: "127.0.0.1:0", path: "/stint", certFile: file}, newVitals(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	if !strings.HasPrefix(d.link(), "https://127.0.0.1:") || !strings.Contains(d.link(), "/stint/?token=") {
		t.Errorf("the link is %s", d.link())
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(client.CloseIdleConnections)
	for path, want := range map[string]string{
		"healthz": `200 {"status":"ok"}`, "readyz": `503 {"status":"unready","condition":"database","problem":"it was not reached yet"}`,
		"": `503 {"detail":"the database was not reached yet","status":503,"title":"Service Unavailable"}`, "jobs": `503 {"detail":"the database was not reached yet","status":503,"title":"Service Unavailable"}`,
	} {
		answer, err := client.Get(d.url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if got := fmt.Sprint(answer.StatusCode, " ", strings.TrimSpace(string(body))); err != nil || got != want {
			t.Errorf("%s answers %s, %v; want %s", path, got, err, want)
		}
	}
}
