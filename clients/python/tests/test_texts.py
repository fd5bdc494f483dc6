import unittest
from datetime import datetime, timedelta, timezone

from stint import durations
from stint.enqueue import _statement
from stint.gateway import Gateways, parse_address


class TextsTest(unittest.TestCase):
    def test_durations_are_read_and_written(self):
        for given, seconds, text in [("30s", 30, "30s"), ("1m30s", 90, "90s"), ("250ms", 0.25, "0.25s"), ("24h", 86400, "86400s"),
                                     ("14d", 1209600, "1209600s"), ("1.5h", 5400, "5400s"), (100, 100, "100s"), (0.5, 0.5, "0.5s"),
                                     ("0", 0, "0s"), (timedelta(minutes=2), 120, "120s")]:
            self.assertEqual(durations.seconds(given), seconds)
            self.assertEqual(durations.text(given), text)

    def test_what_is_no_duration_is_refused(self):
        for given in ("", "5", "5 minutes", "s", "-1s", "1h 2m"):
            with self.assertRaises(ValueError, msg=given):
                durations.text(given)

    def test_instants_are_read_to_the_microsecond(self):
        at = datetime(2026, 3, 1, 12, 0, 5, 120000, timezone.utc)
        for text in ("2026-03-01T12:00:05.12Z", "2026-03-01T12:00:05.120000999Z", "2026-03-01T13:00:05.12+01:00"):
            self.assertEqual(durations.parse_instant(text), at)

    def test_an_address_gives_the_token_and_does_not_show_it(self):
        a = parse_address("https://jobs.example.com/stint/?token=secret", None)
        self.assertEqual((a.secure, a.host, a.port, a.path, a.token), (True, "jobs.example.com", None, "/stint", "secret"))
        self.assertEqual(str(a), "https://jobs.example.com/stint")
        self.assertEqual(parse_address("http://h:1/?token=a", "b").token, "b")

    def test_several_gateways_share_a_token(self):
        g = Gateways("http://a:1/?token=t, http://b:2", None)
        self.assertEqual([(a.host, a.token) for a in g.all], [("a", "t"), ("b", "t")])
        first = g.current
        g.failed(first)
        second = g.current
        self.assertIsNot(first, second)
        g.failed(first)  # another thread that was late
        self.assertIs(g.current, second)

    def test_a_statement_has_what_was_given(self):
        sql, values = _statement("mail", [None, {"to": 1}], {"delay": "5m", "unique": "none", "queue": None}, "${}".format)
        self.assertEqual(values, ["mail", "300s", "none", '[{}, {"to": 1}]'])
        self.assertIn("($1::text, a, delay => $2::text::interval, uniqueness => $3::text)", sql)

    def test_unknown_options_and_times_without_zone_are_refused(self):
        with self.assertRaises(TypeError):
            _statement("mail", [1], {"dealy": "5m"}, "%s".format)
        with self.assertRaises(ValueError):
            _statement("mail", [1], {"run_at": datetime(2026, 1, 1)}, "%s".format)
