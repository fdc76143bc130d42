// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// The old process' side of a restart. The new one is a shell that speaks on its channel, descriptor 3
// behind no sockets, what the test wants it to.
#include "app/successor.h"

#include "app/inheritance.h"
#include "support/io_fixture.h"
#include "support/temporary_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace baton::app {
namespace {

using namespace std::chrono_literals;
using test::awaitable;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct SuccessorTest : test::IoFixture {
  ~SuccessorTest() override {
    if (!successor) return;
    successor->stop();
    run_until([this] { return tasks.running() == 0; });
  }

  void replace_with(std::string script, std::chrono::milliseconds timeout = 10s) {
    make({"/bin/sh", "-c", std::move(script)}, timeout);
  }
  void make(std::vector<std::string> command, std::chrono::milliseconds timeout = 10s) {
    successor = std::make_unique<Successor>(
        io, tasks, std::move(command), timeout,
        Successor::Hooks{
            .objection = [this] { return std::string_view(objection); },
            .save = [this]() -> awaitable<void> {
              calls.emplace_back("save");
              co_return;
            },
            .sockets = [this] { return sockets; },
            .ready = [this] { return ready; },
            .own_file = [this](bool own) { calls.emplace_back(own ? "own" : "disown"); },
            .handed_over = [this] { calls.emplace_back("handed_over"); }},
        metrics, log);
    successor->start();
  }
  void ask() { EXPECT_EQ(::kill(::getpid(), SIGUSR2), 0); }
  bool logged(std::string_view event) const {
    return lines.contains("\"event\":\"" + std::string(event) + "\"");
  }
  // The failures counted under a reason.
  std::string failures(const std::string& reason) const {
    const std::string page = metrics.render();
    const std::string series = "baton_restart_failures_total{reason=\"" + reason + "\"} ";
    const std::size_t at = page.find(series);
    if (at == page.npos) return "none";
    const std::size_t begin = at + series.size();
    return page.substr(begin, page.find('\n', begin) - begin);
  }
  void expect_failure(const std::string& reason) {
    run_until([&] { return logged("restart_failed"); });
    EXPECT_EQ(failures(reason), "1");
    EXPECT_THAT(lines, HasSubstr("\"kind\":\"" + reason + "\""));
    run_until([this] { return tasks.running() == 0; });
    EXPECT_THAT(calls, Not(testing::Contains("handed_over")));
  }
  std::string file(const std::string& name) const {
    std::ifstream in(directory.path(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }

  test::TemporaryDirectory directory;
  std::string objection;
  std::vector<Handed> sockets;
  std::vector<std::string> calls;
  bool ready = true;
  std::string lines;
  telemetry::Logger log{telemetry::Format::Json, telemetry::Level::Debug, lines};
  telemetry::Registry metrics;
  net::TaskGroup tasks{io, [](std::exception_ptr) { ADD_FAILURE() << "a task threw"; }};
  std::unique_ptr<Successor> successor;
};

TEST_F(SuccessorTest, HandsOverToOneThatIsReady) {
  // The shell is no daemon: its own id stands for the one that it would have as an orphan.
  replace_with("echo pid $$ >&3; echo ready >&3; read line <&3; echo \"$line\" >" +
               directory.path("heard"));
  ask();
  run_until([this] { return logged("handed_over"); });
  EXPECT_THAT(calls, ElementsAre("save", "disown", "handed_over"));
  EXPECT_EQ(file("heard"), "go\n");
  for (const char* reason : {"start", "ended", "timeout", "stopped"}) {
    EXPECT_EQ(failures(reason), "0") << reason;
  }
}

TEST_F(SuccessorTest, HandsDownItsSocketsAndTheChannelLast) {
  const int null = ::dup(STDERR_FILENO);
  sockets = {{"listen", null}, {"listen", null}, {"admin", null}};
  replace_with("echo \"$BATON_TAKEOVER\" >" + directory.path("names") +
               "; echo pid $$ >&6; echo ready >&6; read line <&6");
  ask();
  run_until([this] { return logged("handed_over"); });
  EXPECT_EQ(file("names"), "listen:listen:admin:predecessor\n");
  ::close(null);
}

TEST_F(SuccessorTest, GoesOnWhereTheProgramIsNotThere) {
  make({directory.path("no-such-program")});
  ask();
  expect_failure("start");
  EXPECT_TRUE(logged("restart_not_started"));
  EXPECT_THAT(lines, HasSubstr("no-such-program"));
}

TEST_F(SuccessorTest, GoesOnWhereTheSuccessorEndsBeforeItIsReady) {
  replace_with("exit 7");
  ask();
  expect_failure("ended");
  EXPECT_THAT(lines, HasSubstr("\"ended_with\":\"exit code 7\""));
}

TEST_F(SuccessorTest, SaysWhichSignalEndedIt) {
  replace_with("kill -ABRT $$");
  ask();
  expect_failure("ended");
  EXPECT_THAT(lines, HasSubstr("\"ended_with\":\"signal 6\""));
}

TEST_F(SuccessorTest, EndsOneThatIsNotReadyInTime) {
  replace_with("echo pid $$ >&3; read line <&3", 100ms);
  ask();
  expect_failure("timeout");
  EXPECT_THAT(lines, HasSubstr("it was not ready within restart_timeout"));
}

TEST_F(SuccessorTest, DoesNotTakeGarbageForReady) {
  replace_with("printf 'pid \\nready \\nREADY\\nready\\0\\npid abc\\nrea' >&3; read line <&3",
               200ms);
  ask();
  expect_failure("timeout");
}

TEST_F(SuccessorTest, AReadySuccessorMustSayWhoItIs) {
  replace_with("echo ready >&3; read line <&3", 200ms);
  ask();
  expect_failure("timeout");
}

TEST_F(SuccessorTest, EndsOneThatSaysTooMuchWithoutALine) {
  replace_with("head -c 20000 /dev/zero | tr '\\0' x >&3; read line <&3");
  ask();
  expect_failure("ended");
}

TEST_F(SuccessorTest, AnUnreadyProcessLeavesToOneThatHasAskedItsWorkers) {
  ready = false;
  replace_with("echo pid $$ >&3; echo checked >&3; read line <&3");
  ask();
  run_until([this] { return logged("handed_over"); });
  EXPECT_THAT(calls, ElementsAre("save", "disown", "handed_over"));
}

TEST_F(SuccessorTest, RefusesWithTheObjectionAndStartsNothing) {
  objection = "not today";
  replace_with("touch " + directory.path("started"));
  ask();
  run_until([this] { return logged("restart_refused"); });
  EXPECT_THAT(lines, HasSubstr("\"reason\":\"not today\""));
  EXPECT_THAT(calls, ElementsAre());
  EXPECT_EQ(tasks.running(), 0U);
}

TEST_F(SuccessorTest, RefusesASecondOneMeanwhile) {
  replace_with("echo pid $$ >&3; read line <&3", 10s);
  ask();
  run_until([this] { return logged("restart_begun"); });
  ask();
  run_until([this] { return logged("restart_refused"); });
  EXPECT_THAT(lines, HasSubstr("another restart is under way"));
}

TEST_F(SuccessorTest, CanTryAgainAfterAFailure) {
  const std::string tried = directory.path("tried");
  replace_with("if [ -e " + tried +
               " ]; then echo pid $$ >&3; echo ready >&3; read line <&3; else : >" + tried +
               "; fi");
  ask();
  expect_failure("ended");
  ask();
  run_until([this] { return logged("handed_over"); });
  EXPECT_THAT(calls, ElementsAre("save", "save", "disown", "handed_over"));
}

TEST_F(SuccessorTest, ItsOwnEndEndsTheSuccessorToo) {
  replace_with("echo pid $$ >&3; echo $$ >" + directory.path("started") + "; read line <&3");
  ask();
  run_until([this] { return file("started").ends_with('\n'); });
  successor->give_up();
  EXPECT_EQ(failures("stopped"), "1");
  run_until([this] { return tasks.running() == 0; });
  EXPECT_EQ(::kill(std::stoi(file("started")), 0), -1);  // it was ended, and waited for
  ask();
  run_until([this] { return logged("restart_refused"); });
  EXPECT_THAT(lines, HasSubstr("the process has handed over, or is to end"));
}

}  // namespace
}  // namespace baton::app
