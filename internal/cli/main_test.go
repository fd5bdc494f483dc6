package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/ncruces/go-sqlite3"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// The test binary is also the program, under the name stint.
func TestMain(m *testing.M) {
	// Tests that run under nohup are told to ignore HUP, and so is whatever they
	// start; a signal that is listened to is not passed on like that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	testscript.Main(pgtest.Runner{M: m}, map[string]func(){"stint": program, "ask": ask, "child": child, "serve": serve, "receive": receiveRequests})
}

// ask prints the status and the body that a URL answers with: ask URL [METHOD [BODY
// [HEADER]...]]. Cookies are kept from one answer to the next request.
func ask() {
	err := func() error {
		method, body, headers := http.MethodGet, "", []string(nil)
		if len(os.Args) > 2 {
			method = os.Args[2]
		}
		if len(os.Args) > 3 {
			body, headers = os.Args[3], os.Args[4:]
		}
		r, err := http.NewRequest(method, os.Args[1], strings.NewReader(body))
		if err != nil {
			return err
		}
		for _, header := range headers {
			name, value, _ := strings.Cut(header, ": ")
			if r.Header.Set(name, value); name == "Host" {
				r.Host = value
			}
		}
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		cookies, err := cookiejar.New(nil)
		if err != nil {
			return err
		}
		answer, err := (&http.Client{Jar: cookies}).Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		fmt.Print(answer.StatusCode, " ")
		_, err = io.Copy(os.Stdout, answer.Body)
		return err
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child runs a command whose process id and output somebody wants before it ends.
// It takes the command with it when it is told to go, so that nothing is left of a
// script that failed.
func child() {
	name := os.Args[1]
	err := func() error {
		out, err := os.Create(name + ".out")
		if err != nil {
			return err
		}
		complaints, err := os.Create(name + ".err")
		if err != nil {
			return err
		}
		told := make(chan os.Signal, 1)
		signal.Notify(told, os.Interrupt, syscall.SIGTERM)
		cmd := exec.Command(os.Args[2], os.Args[3:]...)
		cmd.Stdout, cmd.Stderr = out, complaints
		if err := cmd.Start(); err != nil {
			return err
		}
		go func() {
			<-told
			_ = cmd.Process.Kill() // It fails when the command has ended, which is what is wanted.
		}()
		if err := os.WriteFile(name+".pid", []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
			return errors.Join(err, cmd.Process.Kill())
		}
		_ = cmd.Wait() // What it says is in the state.
		fmt.Println(cmd.ProcessState)
		return nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve answers for a file over the API, at a port of this machine: serve FILE PORT. It
// knows the tokens token-of-the-ROLE-000001 of a viewer, an operator and an admin, and
// goes by the name jobs.example.com too. It ends when it is told to, also where that
// signal is ignored by whoever runs the tests.
func serve() {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer release()
	err := func() error {
		db, err := sqlite.Open(context.Background(), os.Args[1], sqlite.Config{})
		if err != nil {
			return err
		}
		defer db.Close()
		config := guard.Config{Hosts: []string{"jobs.example.com"}}
		for _, role := range []guard.Role{guard.Viewer, guard.Operator, guard.Admin} {
			config.Tokens = append(config.Tokens, guard.NewToken(role.String(), role, "token-of-the-"+role.String()+"-000001"))
		}
		g, err := guard.New(config)
		if err != nil {
			return err
		}
		handler := api.New(db, api.Config{
			Restricted: builtin.names(), HideArgs: true, Bounded: boundedKinds(),
			Bury: func(ctx context.Context, token store.EngineID, why string) (int, error) {
				return engine.Bury(ctx, db, token, why)
			},
			OnError: func(_ context.Context, operation string, err error) { fmt.Fprintln(os.Stderr, operation, err) },
		})
		server := &http.Server{Addr: "127.0.0.1:" + os.Args[2], Handler: g.Wrap(handler), ReadHeaderTimeout: time.Minute}
		context.AfterFunc(ctx, func() { _ = server.Close() })
		return server.ListenAndServe()
	}()
	if !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// receiveRequests accepts every request at a port of this machine with status 202: receive PORT. It writes what came
// to the file received, a line each, and the last URL for a callback to the file callback.
func receiveRequests() {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer release()
	server := &http.Server{Addr: "127.0.0.1:" + os.Args[1], ReadHeaderTimeout: time.Minute}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		to, wrong := os.OpenFile("received", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err = errors.Join(err, wrong); err == nil {
			_, err = fmt.Fprintf(to, "%s %s id=%s signed=%s %s\n", r.Method, r.URL, r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Signature"), body)
			err = errors.Join(err, to.Close(), os.WriteFile("callback", []byte(r.Header.Get("Stint-Callback")), 0o600))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		w.WriteHeader(http.StatusAccepted)
	})
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// program is Main. With STINT_TEST_DEAF it performs one more kind, deaf, whose
// handler leaves a file named as the variable says, and if that is "forever"
// never ends, whatever it is told. With STINT_TEST_STEPS it performs stepwise,
// with STINT_TEST_SIGNALS awaiting, with STINT_TEST_QUESTIONS asking, with STINT_TEST_TALKS talking, and with STINT_TEST_REDACTS syncing.
func program() {
	if how := os.Getenv("STINT_TEST_DEAF"); how != "" {
		kind := stint.KindInfo{Name: "deaf"}
		builtin = append(builtin, builtinKind{kind, func(kindOptions) stint.Handler {
			return func(context.Context, *stint.Job) (json.RawMessage, error) {
				err := os.WriteFile(how, nil, 0o600)
				for how == "forever" {
					time.Sleep(time.Hour)
				}
				return nil, err
			}
		}, func(json.RawMessage) error { return nil }, nil})
	}
	if os.Getenv("STINT_TEST_STEPS") != "" {
		builtin = append(builtin, builtinKind{stint.KindInfo{Name: "stepwise"}, func(kindOptions) stint.Handler {
			return stepwise
		}, func(json.RawMessage) error { return nil }, nil})
	}
	if os.Getenv("STINT_TEST_SIGNALS") != "" {
		builtin = append(builtin, builtinKind{stint.KindInfo{Name: "awaiting"}, func(kindOptions) stint.Handler {
			return awaiting
		}, func(json.RawMessage) error { return nil }, nil})
	}
	if os.Getenv("STINT_TEST_QUESTIONS") != "" {
		builtin = append(builtin, builtinKind{stint.KindInfo{Name: "asking"}, func(kindOptions) stint.Handler {
			return asking
		}, func(json.RawMessage) error { return nil }, nil})
	}
	if os.Getenv("STINT_TEST_TALKS") != "" {
		builtin = append(builtin, builtinKind{stint.KindInfo{Name: "talking"}, func(kindOptions) stint.Handler {
			return talking
		}, func(json.RawMessage) error { return nil }, nil})
	}
	if os.Getenv("STINT_TEST_REDACTS") != "" {
		builtin = append(builtin, builtinKind{stint.KindInfo{Name: "syncing", Redacted: []string{"/token"}}, func(kindOptions) stint.Handler {
			return syncing
		}, func(json.RawMessage) error { return nil }, nil})
	}
	os.Exit(Main())
}

// syncing returns how long the token of its arguments is.
func syncing(_ context.Context, job *stint.Job) (json.RawMessage, error) {
	var args struct{ Token string }
	err := json.Unmarshal(job.Args, &args)
	return fmt.Appendf(nil, `{"length":%d}`, len(args.Token)), err
}

// stepwise does a step, one with a large result, and one that sleeps.
func stepwise(ctx context.Context, _ *stint.Job) (json.RawMessage, error) {
	for name, result := range map[string]any{"charge": map[string]string{"ref": "<7>", "note": strings.Repeat("long ", 20)}, "report": strings.Repeat("x", 20_000)} {
		if _, err := stint.Step(ctx, name, func(context.Context) (any, error) { return result, nil }); err != nil {
			return nil, err
		}
	}
	return nil, stint.Sleep(ctx, "trial", time.Hour)
}

// talking says how far it is and logs lines, then waits for a file named go.
func talking(ctx context.Context, _ *stint.Job) (json.RawMessage, error) {
	stint.SetProgress(ctx, 0.4, "page 40")
	stint.Logger(ctx).Info("begun", "pages", 100)
	stint.Logger(ctx).Warn("slow")
	for range 2000 {
		stint.Logger(ctx).Info("a page is loaded, and this is a line about that")
	}
	for {
		if _, err := os.Stat("go"); err == nil {
			stint.SetProgress(ctx, 1, "")
			return nil, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// awaiting returns what is sent to it as the first signal "approved".
func awaiting(ctx context.Context, _ *stint.Job) (json.RawMessage, error) {
	return stint.AwaitAs[json.RawMessage](ctx, "approval", "approved", 72*time.Hour)
}

// asking asks two questions at the same time, and returns the answer to the first.
func asking(ctx context.Context, _ *stint.Job) (json.RawMessage, error) {
	a, first := stint.Ask(ctx, "approve", "Pay 900 EUR\nto <ACME>?", 72*time.Hour, "pay", "refuse it")
	_, second := stint.Ask(ctx, "how to ship", "By air?", time.Hour, "air", "sea")
	if err := errors.Join(first, second); err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

// Each script is a session of somebody who uses the program. Beside testscript's
// own commands there are
//
//	exits CODE stint …       run, and want that exit code
//	bad CODE stint …         the same, and want one line with what is wrong and at
//	                         most one hint on standard error, nothing on standard output
//	unprivileged CODE stint …   the same, by somebody who is not the superuser
//	until PATTERN stint …    run again and again until the output matches
//	id NAME stint …          run, and keep the printed id in $NAME
//	signal TERM|INT|HUP      send it to the last command in the background
//	repeat N TEXT FILE       write TEXT N times to a file
//	database                 put the URL of a new PostgreSQL database into $PG
//	sql DATABASE STATEMENT   run SQL on a database of either kind; stdout is what was printed last
//	server [stop|start]      put the URL of a server of its own into $PG; stop it, start it again
//	port NAME                put a port that nobody listens at into $NAME
//	ask URL [METHOD [BODY [HEADER]...]]   a program: print the status and the body of the answer
//	link FILE                wait until the link of a dashboard stands in a file; put it into $LINK, its address into
//	                         $BOARD and its token into $TOKEN
//	serve FILE PORT          a program: serve the API of a file, with a token for each role
//	child NAME stint …       a program: run, with the process id in NAME.pid and what it
//	                         prints in NAME.out and NAME.err, and print how it ended
//
// and $WEB is the URL of a server that answers 200 to /ok and 500 to the rest.
func TestScripts(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ok" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "answer to %s %s\n", r.Method, r.URL.Path)
		if len(body) > 0 {
			fmt.Fprintf(w, "got %s\n", body)
		}
	}))
	t.Cleanup(web.Close)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("WEB", web.URL)
			e.Setenv("TZ", "UTC")
			e.Setenv("GORACE", os.Getenv("GORACE")) // how long the program sleeps at its end
			e.Values[testingTB] = e.T()
			e.Values[ownServerKey] = &scriptServer{}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "bad": bad, "unprivileged": unprivileged, "until": until, "id": id, "repeat": repeat, "signal": sendSignal,
			"database": newDatabase, "sql": statement, "server": ownServer, "port": freePort, "link": findLink,
		},
	})
}

// exits runs a command and compares its exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := code(ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func code(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

var complaint = regexp.MustCompile(`^stint: [^\n]+\n(hint: [^\n]+\n)?$`)

func bad(ts *testscript.TestScript, neg bool, args []string) {
	exits(ts, neg, args)
	if text := ts.ReadFile("stderr"); !complaint.MatchString(text) {
		ts.Fatalf("this is not one clear error:\n%s", text)
	}
	if text := ts.ReadFile("stdout"); text != "" {
		ts.Fatalf("an error went to standard output:\n%s", text)
	}
}

// unprivileged is bad without the superuser's way past permissions.
func unprivileged(ts *testscript.TestScript, neg bool, args []string) {
	if os.Geteuid() == 0 {
		drop := []string{args[0], "setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-dac_override,-dac_read_search"}
		args = append(drop, args[1:]...)
	}
	bad(ts, neg, args)
}

// until waits for a condition. Its limit is only met by a program that hangs.
func until(ts *testscript.TestScript, _ bool, args []string) {
	pattern, err := regexp.Compile(`(?m)` + args[0])
	ts.Check(err)
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err := ts.Exec(args[1], args[2:]...); err == nil && pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("the output never matched %s", args[0])
}

func id(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(ts.Exec(args[1], args[2:]...))
	text := strings.TrimSpace(ts.ReadFile("stdout"))
	if n, err := strconv.ParseInt(text, 10, 64); err != nil || n < 1 {
		ts.Fatalf("%q is no id", text)
	}
	ts.Setenv(args[0], text)
}

func repeat(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(strings.Repeat(args[1], n)), 0o600))
}

// sendSignal sends TERM, INT or HUP to the last command in the background.
func sendSignal(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP}
	running := ts.BackgroundCmds()
	ts.Check(running[len(running)-1].Process.Signal(signals[args[0]]))
}

// ownServer gives a script a server that it may stop.
func ownServer(ts *testscript.TestScript, _ bool, args []string) {
	switch s, _ := ts.Value(ownServerKey).(*scriptServer); {
	case len(args) == 0:
		t, _ := ts.Value(testingTB).(testing.TB)
		s.Server = pgtest.Start(t, pgtest.Options{})
		setDatabase(ts, s.URL("postgres"))
	case args[0] == "stop":
		s.Stop(pgtest.Fast)
	default:
		s.Server.Start()
	}
}

// ownServerKey is the key of a script's own server.
const ownServerKey = "server"

type scriptServer struct{ *pgtest.Server }

// freePort finds a port at which nobody listens now.
func freePort(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	ts.Check(errors.Join(err, l.Close()))
	ts.Setenv(args[0], port)
}

var linkPattern = regexp.MustCompile(`(https?://\S+/)(?:\?token=(\w+))?\n`)

// findLink waits for what a dashboard prints.
func findLink(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		text, _ := os.ReadFile(ts.MkAbs(args[0])) // which may not be there yet
		if found := linkPattern.FindSubmatch(text); found != nil {
			ts.Setenv("LINK", strings.TrimSpace(string(found[0])))
			ts.Setenv("BOARD", strings.TrimSuffix(string(found[1]), "/"))
			ts.Setenv("TOKEN", string(found[2]))
			return
		}
	}
	ts.Fatalf("there was never a link in %s", args[0])
}

// newDatabase gives a script a database of its own. $ADDR, $DBUSER and $DBPASS
// are parts of its URL, for those who want to write a wrong one.
func newDatabase(ts *testscript.TestScript, _ bool, _ []string) {
	t, _ := ts.Value(testingTB).(testing.TB)
	setDatabase(ts, pgtest.New(t))
}

func setDatabase(ts *testscript.TestScript, text string) {
	u, err := url.Parse(text)
	ts.Check(err)
	password, _ := u.User.Password()
	ts.Setenv("PG", text)
	ts.Setenv("ADDR", u.Host)
	ts.Setenv("DBUSER", u.User.Username())
	ts.Setenv("DBPASS", password)
	ts.Setenv("DBNAME", strings.TrimPrefix(u.Path, "/"))
}

// statement runs SQL on a database, of either kind.
func statement(ts *testscript.TestScript, _ bool, args []string) {
	text := args[1]
	if text == "stdout" {
		text = ts.ReadFile(text)
	}
	if !(databaseFlags{url: args[0]}).isPostgres() {
		db, err := sqlite3.Open("file:" + ts.MkAbs(args[0]))
		ts.Check(err)
		ts.Check(db.Exec(text))
		ts.Check(db.Close())
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, args[0])
	ts.Check(err)
	_, err = conn.Exec(ctx, text)
	ts.Check(errors.Join(err, conn.Close(ctx)))
}

// testingTB is the key of the test that a script runs in.
const testingTB = "testing.TB"
