"""What the wild sends, and the right answer to it; real traces, in and out again.

The inputs of cases/ are small files of kinds that public bug reports describe. Real traces are read from
../shared/traces beside the project when they are there; synthetic ones of the same shape are always used.
"""

import decimal
import glob
import gzip
import itertools
import json
import os
import re
import sys
import unittest

import chrome_compare
import synthetic
from service import ROOT, Service

CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")
REAL = os.path.join(ROOT, "..", "shared", "traces")
jobs = itertools.count()  # a trace of its own job each: one that fails to stop is in nobody's way
WHOLE_FILES = ("truncated", "log-line-inside")  # as events they are refused


def case_bytes(name):
    with open(os.path.join(CASES, name + ".json"), "rb") as f:
        return f.read()


class Corpus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Service().__enter__()
        cls.service.register("ascend.KERNEL", "ascend.SYNC", "ascend.MEMCPY", "ascend.HW_COUNTER")

    @classmethod
    def tearDownClass(cls):
        cls.service.__exit__(None, None, None)

    def send(self, name, how, **request):
        """Send one case, stop, and give (reply, view, download)."""
        trace = self.service.trace(**request)
        send = self.service.events if how == "events" else self.service.file
        status, reply = send(trace, case_bytes(name), "?rank=0")
        self.assertIn(status, (200, 201), f"{name} as {how}: {reply}")
        view = self.service.stop(trace)
        self.assertEqual(view["state"], "complete", view)
        out = chrome_compare.load(self.service.download(trace))
        return json.loads(reply), view, out

    def both_ways(self, name, check, **request):
        for how in ("events", "files"):
            with self.subTest(case=name, how=how):
                check(*self.send(name, how, **request))

    def events_of(self, out):
        return [e for e in out["traceEvents"] if e["ph"] != "M"]

    def assert_intact(self, name, out):
        source = chrome_compare.load(case_bytes(name))
        self.assertEqual(chrome_compare.compare([source], out), [], name)


class Cases(Corpus):
    def test_names_come_back_byte_for_byte(self):
        for name in ("quotes-in-name", "utf8-name", "control-chars"):
            self.both_ways(name, lambda reply, view, out, name=name: self.assert_intact(name, out))

    def test_invalid_utf8_becomes_the_replacement_character_and_is_counted(self):
        def check(reply, view, out):
            self.assertEqual(reply["accepted"], 1)
            self.assertEqual(reply["repaired"], 1)
            self.assertEqual([e["name"] for e in self.events_of(out)], ["bad\ufffd\ufffd name"])
        self.both_ways("invalid-utf8-name", check)

    def test_a_negative_duration_becomes_zero_and_is_counted(self):
        def check(reply, view, out):
            self.assertEqual(reply["repaired"], 1)
            self.assertEqual([e["dur"] for e in self.events_of(out)], [0])
        self.both_ways("negative-dur", check)

    def test_nanoseconds_at_epoch_scale_are_exact(self):
        def check(reply, view, out):
            (event,) = chrome_compare.normalise({"traceEvents": self.events_of(out),
                                                 "baseTimeNanoseconds": out["baseTimeNanoseconds"]})
            self.assertEqual((event.ts, event.dur), (1795982590884123457, 1))
        self.both_ways("epoch-us-with-ns", check)

    def test_numbers_as_text_are_numbers_and_text_ids_stay(self):
        def check(reply, view, out):
            (event,) = self.events_of(out)
            self.assertEqual((event["ts"], event["dur"]), (decimal.Decimal("12.5"), 3))
            self.assertEqual((event["pid"], event["tid"]), ("Spans", "PyTorch Profiler"))
        self.both_ways("string-numbers", check)

    def test_every_kind_of_argument_comes_back_equal(self):
        self.both_ways("args-all-kinds", lambda reply, view, out: self.assert_intact("args-all-kinds", out))

    def test_begins_and_ends_nest_and_what_is_left_over_is_told(self):
        def check(reply, view, out):
            slices = {e.name: (e.ph, e.ts, e.dur) for e in chrome_compare.normalise(out) if e.ph in "XB"}
            self.assertEqual(slices["outer"], ("X", 1000, 3000))
            self.assertEqual(slices["inner"], ("X", 2000, 1000))
            self.assertEqual(slices["never ends"][:2], ("B", 5000))
            (unfinished,) = [e for e in self.events_of(out) if e["name"] == "never ends"]
            self.assertIs(unfinished["args"]["unfinished"], True)
            dropped = [s["counts"]["dropped_by_cause"] for s in view["streams"]]
            self.assertEqual([d.get("unmatched-end") for d in dropped], [1], view)
        self.both_ways("begin-end", check)

    def test_overlapping_slices_all_keep_their_start_and_duration(self):
        self.both_ways("overlap-same-lane", lambda reply, view, out: self.assert_intact("overlap-same-lane", out))

    def test_flows_counters_instants_and_asynchronous_events_come_back(self):
        for name in ("flows", "counters-instants", "async"):
            self.both_ways(name, lambda reply, view, out, name=name: self.assert_intact(name, out))

    def test_not_a_number_becomes_text(self):
        def check(reply, view, out):
            (event,) = self.events_of(out)
            self.assertEqual(event["args"], {"loss": "NaN", "lr": "Infinity"})
        self.both_ways("nan-in-args", check)

    def test_an_array_without_its_end_is_accepted(self):
        def check(reply, view, out):
            self.assertEqual([e["name"] for e in self.events_of(out)], ["a", "b"])
        self.both_ways("array-no-end", check)

    def test_damaged_events_are_refused_with_the_offset_and_nothing_is_stored(self):
        for name in WHOLE_FILES:
            with self.subTest(case=name):
                trace = self.service.trace()
                status, reply = self.service.events(trace, case_bytes(name))
                self.assertEqual(status, 400, reply)
                self.assertRegex(json.loads(reply)["detail"], r"\b\d+\b")
                view = self.service.stop(trace)
                self.assertEqual(view["outcome"], "empty")
                self.assertEqual(self.events_of(chrome_compare.load(self.service.download(trace))), [])

    def test_of_a_damaged_file_what_can_be_read_is_kept_and_the_damage_told(self):
        for name, names in (("truncated", ["kept"]), ("log-line-inside", ["kept", "after"])):
            with self.subTest(case=name):
                reply, view, out = self.send(name, "files")
                self.assertEqual([e["name"] for e in self.events_of(out)], names)
                told = json.dumps(view) + json.dumps(out["traceplane"], default=str)
                self.assertIn("damage", told)

    def test_untyped_events_are_kept_without_a_filter_and_never_typed(self):
        def check(reply, view, out):
            self.assertEqual(reply["untyped"], 3)
            self.assert_intact("untyped-cats", out)
        self.both_ways("untyped-cats", check)

    def test_untyped_events_do_not_pass_a_filter_that_names_types(self):
        def check(reply, view, out):
            self.assertEqual((reply["accepted"], reply["filtered"]), (0, 3))
            self.assertEqual(self.events_of(out), [])
        self.both_ways("untyped-cats", check, filter={"include": ["ascend.KERNEL"]})


class Traces(Corpus):
    """Alone and merged, every event, argument, flow and metadata name intact."""

    def upload(self, files, query="", ranks=True):
        trace = self.service.trace(job=f"job-{next(jobs)}")
        for rank, data in enumerate(files):
            status, reply = self.service.file(trace, data, f"?name=r{rank}.json" + (f"&rank={rank}" if ranks else ""))
            self.assertIn(status, (200, 201), reply)
            self.assertEqual(json.loads(reply)["rejected"], 0, reply)
        view = self.service.stop(trace)
        self.assertEqual(view["state"], "complete")
        return trace, self.service.download(trace, query)

    def check_alone(self, name, data):
        with self.subTest(alone=name):
            _, body = self.upload([data], ranks=False)  # the file says which it is
            source, out = chrome_compare.load(data), chrome_compare.load(body)
            self.assertEqual(chrome_compare.compare([source], out), [])
            for key, value in source.items():
                if key not in ("traceEvents", "distributedInfo", "baseTimeNanoseconds"):
                    self.assertEqual(out.get(key), value, f"top-level {key}")
            info = dict(source.get("distributedInfo", {}))
            self.assertEqual({k: out["distributedInfo"].get(k) for k in info}, info)

    def check_merged(self, name, files):
        with self.subTest(merged=name):
            trace, body = self.upload(files)
            sources = [chrome_compare.load(f) for f in files]
            self.assertEqual(chrome_compare.compare(sources, chrome_compare.load(body), merged=True), [])
            for rank, source in enumerate(sources):
                alone = chrome_compare.load(self.service.download(trace, f"?ranks={rank}"))
                self.assertEqual(chrome_compare.compare([source], alone), [], f"rank {rank} of the merge, alone")

    def test_synthetic_traces_come_back_intact(self):
        ranks = [synthetic.dump(synthetic.rank_trace(7, rank)).encode() for rank in range(2)]
        self.check_alone("synthetic", ranks[0])
        self.check_alone("synthetic, gzip in two members", gzip.compress(ranks[1][:9999]) + gzip.compress(ranks[1][9999:]))
        self.check_merged("synthetic", ranks)

    @unittest.skipUnless(os.path.isdir(REAL), "no ../shared/traces beside the project")
    def test_real_traces_come_back_intact(self):
        files = {os.path.basename(p): open(p, "rb").read() for p in sorted(glob.glob(os.path.join(REAL, "*.json.gz")))}
        self.assertGreater(len(files), 0)
        for name, data in files.items():
            self.check_alone(name, data)
        self.check_merged("cuda-rank", [files["cuda-rank0.json.gz"], files["cuda-rank1.json.gz"]])
        self.check_merged("libkineto", [files["libkineto-2026-08-p0.json.gz"], files["libkineto-2026-08-p1.json.gz"]])
        self.check_merged("one file twice", [files["cuda-alexnet.json.gz"]] * 2)
        self.check_merged("all", list(files.values()))

    def test_readers_that_scan_the_head_by_line_find_the_rank_before_the_events(self):
        ranks = [synthetic.dump(synthetic.rank_trace(7, rank)).encode() for rank in range(2)]
        trace, _ = self.upload(ranks)
        for rank in range(2):
            text = self.service.download(trace, f"?ranks={rank}").decode()
            head = text[:text.index('"traceEvents"')]
            found = [m.group(1) for m in map(re.compile(r'"rank":\s+(\d+)').search, head.splitlines()) if m]
            self.assertEqual(found[:1], [str(rank)])
            self.assertIn('"baseTimeNanoseconds"', head)


def main():
    result = unittest.TextTestRunner(verbosity=1).run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
    failed = len(result.failures) + len(result.errors)
    failed_tests = len({t.id().split(" ")[0] for t, _ in result.failures + result.errors})
    print(f"corpus: {result.testsRun - failed_tests - len(result.skipped)} passed, {failed_tests} failed, "
          f"{len(result.skipped)} skipped")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
