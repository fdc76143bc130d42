// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/kv_channel.h"

#include "tools/sim/kv_sockets.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::sim {
namespace {

using Frames = std::vector<std::string>;
using std::chrono::milliseconds;

std::string sequence(std::uint64_t number) {
  std::string out;
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(number >> shift));
  return out;
}

// A channel with a subscriber that is there before the first batch, and somebody who asks for
// replays.
class KvChannelTest : public testing::Test {
 protected:
  void open(KvChannel::Settings settings) {
    // XPUB, so that the test can wait for the subscription; to readers it is a PUB.
    auto feed = open_rank_sockets(context_, zmq::socket_type::xpub, "tcp://127.0.0.1:0", 1);
    auto replay = open_rank_sockets(context_, zmq::socket_type::router, "tcp://127.0.0.1:0", 1);
    ASSERT_TRUE(feed && replay);
    for (zmq::socket_t* socket : {&reader_, &asker_}) {
      socket->set(zmq::sockopt::linger, 0);
      socket->set(zmq::sockopt::rcvtimeo, 5000);
    }
    reader_.set(zmq::sockopt::subscribe, "");
    reader_.connect(feed->endpoint);
    asker_.connect(replay->endpoint);
    zmq::message_t subscription;
    feed->sockets[0].set(zmq::sockopt::rcvtimeo, 5000);
    ASSERT_TRUE(feed->sockets[0].recv(subscription));
    channel_.emplace(std::move(feed->sockets[0]), std::move(replay->sockets[0]),
                     std::move(settings));
  }

  static Frames receive(zmq::socket_t& socket) {
    Frames frames;
    zmq::message_t frame;
    do {
      if (!socket.recv(frame)) return {"nothing came"};
      frames.push_back(frame.to_string());
    } while (frame.more());
    return frames;
  }

  // The answers to a request, the end included.
  std::vector<Frames> replayed(std::uint64_t from) {
    asker_.send(zmq::message_t(), zmq::send_flags::sndmore);
    asker_.send(zmq::buffer(sequence(from)));
    std::vector<Frames> answers;
    asker_.set(zmq::sockopt::rcvtimeo, 1);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (std::chrono::steady_clock::now() < deadline) {
      channel_->serve(now_);
      const Frames answer = receive(asker_);
      if (answer.size() == 1) continue;
      answers.push_back(answer);
      if (answer.back().empty()) break;
    }
    return answers;
  }

  void send(const std::string& payload, KvChannel::Delivery delivery = {}) {
    channel_->send(payload, delivery, now_);
  }

  zmq::context_t context_;
  zmq::socket_t reader_{context_, zmq::socket_type::sub};
  zmq::socket_t asker_{context_, zmq::socket_type::dealer};
  std::optional<KvChannel> channel_;
  TimePoint now_{};
};

TEST_F(KvChannelTest, MessagesHaveATopicANumberAndAPayload) {
  open({.topic = "kv", .first_sequence = 7});
  send("one");
  send("two");
  EXPECT_EQ(receive(reader_), (Frames{"kv", sequence(7), "one"}));
  EXPECT_EQ(receive(reader_), (Frames{"kv", sequence(8), "two"}));
  EXPECT_EQ(channel_->next_sequence(), 9U);
}

TEST_F(KvChannelTest, ReplaysFromANumberOnInFourFrames) {
  open({.topic = "kv"});
  for (const char* payload : {"zero", "one", "two"}) send(payload);
  EXPECT_EQ(replayed(1), (std::vector<Frames>{{"", "kv", sequence(1), "one"},
                                              {"", "kv", sequence(2), "two"},
                                              {"", "", std::string(8, '\xff'), ""}}));
  EXPECT_EQ(replayed(3), (std::vector<Frames>{{"", "", std::string(8, '\xff'), ""}}));
}

TEST_F(KvChannelTest, ReplaysInThreeFrames) {
  open({.topic = "kv", .replay_frames = 3});
  send("zero");
  EXPECT_EQ(replayed(0),
            (std::vector<Frames>{{"", sequence(0), "zero"}, {"", std::string(8, '\xff'), ""}}));
}

TEST_F(KvChannelTest, KeepsOnlyTheLatest) {
  open({.buffer = 2});
  for (const char* payload : {"zero", "one", "two"}) send(payload);
  const auto answers = replayed(0);
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0][3], "one");
}

TEST_F(KvChannelTest, ADroppedBatchIsReplayedAndALostOneIsNot) {
  open({});
  send("dropped", {.copies = 0});
  send("lost", {.copies = 0, .keep = false});
  send("good");
  EXPECT_EQ(receive(reader_)[1], sequence(2));
  const auto answers = replayed(0);
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0][3], "dropped");
  EXPECT_EQ(answers[1][3], "good");
}

TEST_F(KvChannelTest, DoubledAndGarbledBatches) {
  open({});
  send("twice", {.copies = 2});
  send("bad", {.garbage = true});
  EXPECT_EQ(receive(reader_), receive(reader_));
  const Frames garbage = receive(reader_);
  EXPECT_EQ(garbage[1], sequence(1));
  EXPECT_NE(garbage[2], "bad");
  const auto answers = replayed(1);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0][3], "bad");
}

TEST_F(KvChannelTest, ADelayedBatchHoldsUpThoseBehindIt) {
  open({});
  send("late", {.delay = milliseconds(50)});
  send("next");
  now_ += milliseconds(49);
  channel_->serve(now_);
  reader_.set(zmq::sockopt::rcvtimeo, 1);
  EXPECT_EQ(receive(reader_).size(), 1U);
  now_ += milliseconds(1);
  channel_->serve(now_);
  reader_.set(zmq::sockopt::rcvtimeo, 5000);
  EXPECT_EQ(receive(reader_)[2], "late");
  EXPECT_EQ(receive(reader_)[2], "next");
}

TEST_F(KvChannelTest, ARestartCountsAnewAndKeepsNothing) {
  open({});
  send("old");
  channel_->restart();
  send("new");
  EXPECT_EQ(receive(reader_)[1], sequence(0));
  EXPECT_EQ(receive(reader_), (Frames{"", sequence(0), "new"}));
  EXPECT_EQ(replayed(0).size(), 2U);
}

}  // namespace
}  // namespace baton::sim
