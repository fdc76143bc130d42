// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/trtllm_events.h"

#include <gtest/gtest.h>

namespace baton::sim {
namespace {

using nlohmann::ordered_json;

Options trtllm(std::uint32_t buffer) {
  Options options;
  options.engine = model::Engine::Trtllm;
  options.block_size = 2;
  options.blocks = 64;
  options.max_model_len = 4096;
  options.kv.buffer = buffer;
  return options;
}

BlockHash small_hash(std::uint8_t number) {
  BlockHash out{};
  out[7] = number;
  return out;
}

ordered_json drained(TrtllmEvents& events) {
  ordered_json out = ordered_json::array();
  events.drain(out);
  return out;
}

TEST(TrtllmEvents, BeginWithWhatWasCreatedAndAreGivenOnce) {
  const Options options = trtllm(10);
  TrtllmEvents events(options, 0);
  EXPECT_EQ(drained(events), ordered_json::parse(R"([
    {"event_id":0,"data":{"type":"created","num_blocks_per_cache_level":[64,0]},"window_size":4096}])"));
  EXPECT_TRUE(drained(events).empty());
}

TEST(TrtllmEvents, TellOfBlocksWithTheirTokensAlsoOfAPartialOne) {
  const Options options = trtllm(10);
  TrtllmEvents events(options, 0);
  drained(events);
  events.add(std::vector<BlockChange>{
      BlocksStored{
          .parent = small_hash(5), .hashes = {small_hash(6), small_hash(7)}, .tokens = {1, 2, 3}},
      BlockRemoved{.hash = small_hash(7)}});
  EXPECT_EQ(drained(events), ordered_json::parse(R"([
    {"event_id":1,"data":{"type":"stored","parent_hash":5,"blocks":[
      {"type":"stored_block","block_hash":6,"tokens":[
        {"type":"unique_token","token_id":1,"token_extra_id":0},
        {"type":"unique_token","token_id":2,"token_extra_id":0}],"cache_level":0,"priority":35},
      {"type":"stored_block","block_hash":7,"tokens":[
        {"type":"unique_token","token_id":3,"token_extra_id":0}],"cache_level":0,"priority":35}]},
      "window_size":4096},
    {"event_id":2,"data":{"type":"removed","block_hashes":[7]},"window_size":4096}])"));
}

TEST(TrtllmEvents, TheOldestAreLostAndIdsTellIt) {
  const Options options = trtllm(2);
  TrtllmEvents events(options, 0);
  for (std::uint8_t i = 0; i < 5; ++i) {
    events.add(std::vector<BlockChange>{BlockRemoved{.hash = small_hash(i)}});
  }
  const auto kept = drained(events);
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0]["event_id"], 4);
  EXPECT_EQ(kept[1]["event_id"], 5);
}

TEST(TrtllmEvents, LostAndDoubledEventsAndANewBeginning) {
  const Options options = trtllm(10);
  TrtllmEvents events(options, 0);
  drained(events);
  const std::vector<BlockChange> removed{BlockRemoved{.hash = small_hash(1)}};
  events.add(removed, 0);
  events.add(removed, 2);
  const auto kept = drained(events);
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0]["event_id"], 2);
  EXPECT_EQ(kept[1]["event_id"], 2);
  events.restart();
  EXPECT_EQ(drained(events)[0]["event_id"], 0);
}

TEST(TrtllmEvents, SeveralRanksSayWhichTheyAre) {
  Options options = trtllm(10);
  options.dp_size = 2;
  TrtllmEvents events(options, 1);
  EXPECT_EQ(drained(events)[0]["attention_dp_rank"], 1);
}

}  // namespace
}  // namespace baton::sim
