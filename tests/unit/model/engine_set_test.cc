// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "model/engine_set.h"

#include <gtest/gtest.h>

namespace baton::model {
namespace {

TEST(EngineSet, HasWhatWasAdded) {
  EngineSet engines;
  EXPECT_TRUE(engines.empty());
  engines.add(Engine::Sglang);
  engines.add(Engine::Sglang);
  EXPECT_EQ(engines.size(), 1);
  EXPECT_TRUE(engines.contains(Engine::Sglang));
  EXPECT_FALSE(engines.contains(Engine::Vllm));
  engines |= EngineSet{Engine::Trtllm};
  EXPECT_EQ(engines, (EngineSet{Engine::Trtllm, Engine::Sglang}));
}

TEST(EngineSet, WithoutOneTheOthersStay) {
  const EngineSet all{Engine::Vllm, Engine::Sglang, Engine::Trtllm};
  EXPECT_EQ(all.without(Engine::Vllm), (EngineSet{Engine::Sglang, Engine::Trtllm}));
  EXPECT_EQ(all.size(), 3);
  EXPECT_TRUE(EngineSet{Engine::Vllm}.without(Engine::Vllm).empty());
  EXPECT_EQ(EngineSet{Engine::Vllm}.without(Engine::Sglang), EngineSet{Engine::Vllm});
}

}  // namespace
}  // namespace baton::model
