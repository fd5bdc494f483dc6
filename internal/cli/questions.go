package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/link"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

const questionsListHelp = `list|ls: List the open questions, those of the newest jobs first

List prints the questions that handlers ask people, and that have no answer yet, while
there is time for one and their jobs have not ended. Stint jobs answer answers one.

Examples:
  stint questions
  stint questions list --json | jq '.questions[] | {job, name, text}'`

func (a *app) questionsCommand() *cobra.Command {
	return a.noun(page("questions|question: List the questions that jobs ask people, and make links to answer them"),
		a.questionsListCommand(), a.questionsLinkCommand())
}

func (a *app) questionsListCommand() *cobra.Command {
	var (
		limit  int
		before stint.ID
	)
	cmd := a.asks(page(questionsListHelp), func(ctx context.Context, db *database, _ []string) (any, shower, error) {
		p, err := ops.ListQuestions.Call(ctx, db, ops.Page{Before: int64(before), Limit: limit})
		return p, func(now time.Time) { a.listQuestions(p, now) }, err
	})
	countFlag(cmd.Flags(), &limit, "limit", 50, "how many; those of the last job are all there", "")
	idFlag(cmd.Flags(), &before, "before", "only of jobs with a lower id: for the next page")
	return cmd
}

func (a *app) listQuestions(p ops.QuestionPage, now time.Time) {
	printTable(a, p.Questions, "no question is open", row{"job", "question", "kind", "asked", "until", "choices", "text"}, func(q store.OpenQuestion) row {
		return row{q.Job, q.Name, q.Kind, words.Ago(q.Asked, now), words.Ago(q.Until, now), strings.Join(q.Choices, ", "), cut(strings.Join(strings.Fields(q.Text), " "), 60)}
	})
	if p.Next != 0 {
		a.note("there may be more: --before %d", p.Next)
	}
}

const jobsAnswerHelp = `answer ID QUESTION CHOICE: Answer a question that a job asks

Answer gives a job the answer to a question that its handler asks people: one of its
choices, in your name. The job runs at once. The first answer counts: a question that was
answered, whose time is over, or whose job has ended gets no other.

Examples:
  stint jobs answer 12 approve pay
  stint jobs answer 12 approve refuse --comment "we have paid this in May"`

func (a *app) jobsAnswerCommand() *cobra.Command {
	var comment string
	cmd := a.does(page(jobsAnswerHelp), func(ctx context.Context, cmd *cobra.Command, args []string) error {
		id, err := jobID(args[0])
		if err != nil {
			return err
		}
		in := ops.AnswerInput{JobName: ops.JobName{ID: int64(id)}, Body: ops.NewAnswer{Question: args[1], Choice: args[2], Comment: comment}}
		if err := ops.Check(&in); err != nil {
			return err
		}
		return a.on(changing, func(ctx context.Context, db *database, _ []string) error {
			out, err := ops.AnswerQuestion.Call(ctx, db, in)
			switch {
			case errors.Is(err, stint.ErrEnded):
				return withHint(err, "stint jobs show %d says how", id)
			case errors.Is(err, stint.ErrNotAsked):
				return withHint(err, "stint jobs show %d shows its questions", id)
			case err != nil:
				return err
			}
			fmt.Fprintln(a.out, ops.AnswerQuestion.Said(&in, &out))
			return nil
		})(ctx, cmd, args)
	})
	cmd.Flags().StringVar(&comment, "comment", "", "what else is to be said, of at most 4 KiB")
	return cmd
}

// showQuestions prints the open questions of a job.
func (a *app) showQuestions(shown view.Job) {
	for _, s := range shown.Steps {
		if !s.IsOpen() || s.IsCall() || shown.State.Final() {
			continue
		}
		fmt.Fprintf(a.out, "\nquestion %s, asked %s, until %s\n\n", words.Visible(s.Name), moment(s.Began), moment(s.Question.Until))
		if s.Question.Text != "" {
			fmt.Fprintf(a.out, "%s\n\n", indent(words.Visible(s.Question.Text), "  | "))
		}
		for _, c := range s.Question.Choices {
			fmt.Fprintf(a.out, "  stint jobs answer %d %s %s\n", shown.ID, shellQuote(s.Name), shellQuote(c))
		}
	}
}

const questionsLinkHelp = `link ID QUESTION [CHOICE]: Print a link by which somebody answers without a login

Link prints a link to the page of one question, with all its choices or one. Whoever has
it can answer this question in the name of --by, once and until it expires, at a dashboard
that has the same key: STINT_DASHBOARD_LINK_KEY, or link-key in the table [dashboard] of
the file of settings. To open it changes nothing. Programs make links by the package
dashboard/link.

Examples:
  stint questions link 12 approve --by ann --base https://jobs.example.com
  stint questions link 12 approve pay --by ann --for 2h`

func (a *app) questionsLinkCommand() *cobra.Command {
	var (
		l    link.Link
		base string
		last time.Duration
	)
	cmd := a.does(page(questionsLinkHelp), func(_ context.Context, _ *cobra.Command, args []string) error {
		id, err := jobID(args[0])
		if err != nil {
			return err
		}
		if l.Job, l.Question, l.Expires = id, args[1], time.Now().Add(last); len(args) > 2 {
			if l.Choice = args[2]; l.Choice == "" {
				return usagef("the choice is empty")
			}
		}
		secret, err := a.linkKey()
		if err != nil {
			return err
		}
		if secret == "" {
			return withHint(usagef("there is no key to sign links"), "set %s, or link-key in the table [dashboard] of the file of settings, as for the dashboard; openssl rand -hex 16 makes a good one", linkVariable)
		}
		key, err := link.NewKey(secret)
		if err != nil {
			return err
		}
		url, err := key.URL(base, l)
		if err != nil {
			return err
		}
		fmt.Fprintln(a.out, url)
		return nil
	})
	cmd.Flags().StringVar(&l.By, "by", "", "in whose name the link answers")
	cmd.Flags().StringVar(&base, "base", "http://127.0.0.1:7070", "the URL of the dashboard, with its path")
	durationFlag(cmd.Flags(), &last, "for", 72*time.Hour, "for how long the link is valid")
	_ = cmd.MarkFlagRequired("by")
	return cmd
}
