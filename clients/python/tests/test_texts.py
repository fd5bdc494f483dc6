import unittest
from datetime import timedelta

from stint.enqueue import _statement
from stint.errors import seconds, text
from stint.gateway import Gateways


class TextsTest(unittest.TestCase):
    def test_durations_are_written(self):
        for given, said in [("1m30s", "1m30s"), (100, "100.000000s"), (0.5, "0.500000s"), (timedelta(minutes=2), "120.000000s")]:
            self.assertEqual(text(given), said)

    def test_durations_are_read(self):
        for given, said in [("1m30s", 90), ("250ms", 0.25), ("2w", 1209600), ("1d12h", 129600), ("0s", 0), ("", 0)]:
            self.assertEqual(seconds(given), said)

    def test_an_address_gives_the_token_and_does_not_show_it(self):
        g = Gateways("https://jobs.example.com/stint/?token=secret", None)
        self.assertEqual((g.current.url, g.current.token), ("https://jobs.example.com/stint", "secret"))
        self.assertEqual(Gateways("http://h:1/?token=a", "b").current.token, "b")

    def test_several_gateways_share_a_token(self):
        g = Gateways("http://a:1/?token=t, http://b:2", None)
        self.assertEqual(g.all, [("http://a:1", "t"), ("http://b:2", "t")])
        first = g.current
        g.failed(first)
        second = g.current
        self.assertIsNot(first, second)
        g.failed(first)  # another thread that was late
        self.assertIs(g.current, second)

    def test_a_statement_has_what_was_given(self):
        sql, values = _statement("mail", [None, {"to": 1}], {"delay": "5m", "unique": "none", "queue": None}, "${}".format)
        self.assertEqual(values, ["mail", "5m", "none", '[{}, {"to": 1}]'])
        self.assertIn("($1::text, a, delay => $2::text::interval, uniqueness => $3::text)", sql)

    def test_unknown_options_are_refused(self):
        with self.assertRaises(KeyError):
            _statement("mail", [1], {"dealy": "5m"}, "%s".format)
