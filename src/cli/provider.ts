/**
 * Which model answers: from `--model` and from what the environment has keys for.
 */
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as OpenAi from "../openai/OpenAi.ts"
import * as PiAi from "../pi-ai/PiAi.ts"
import * as Resilience from "../resilience/Resilience.ts"
import { type Model, StreamFn } from "../StreamFn.ts"
import { offlineModel, offlineStream } from "./offline.ts"
import { PiAiModels, type PiModels, preferredOf } from "./piAi.ts"

/** A model, how it is reached, and what made it the choice. */
export interface Provider {
  readonly model: Model
  /** Said in the header. */
  readonly because: string
  readonly stream: StreamFn["Service"]["stream"]
}

/** No model can be chosen as was asked. */
export class NoModel extends Data.TaggedError("NoModel")<{
  readonly reason: "UnknownModel" | "UnknownProvider" | "NotInstalled" | "InvalidEnvironment"
  readonly message: string
}> {}

/** The model of OpenAI's API that is asked when none is named. */
const defaultOpenAiModel = "gpt-5.2"

/** A variable that is set but empty counts as missing, as in the shell. */
const variable = (name: string) =>
  Effect.map(
    Effect.orElseSucceed(Config.option(Config.String(name)), () => Option.none<string>()),
    (value) => Option.getOrElse(value, () => "").trim() || undefined
  )

/** A base URL as it is shown: without what may be a secret. */
const shownUrl = (url: string): Effect.Effect<string, NoModel> => {
  const parsed = URL.parse(url)
  if (parsed === null) return Effect.succeed(url)
  if (parsed.username !== "" || parsed.password !== "") {
    return Effect.fail(
      new NoModel({
        reason: "InvalidEnvironment",
        message: "OPENAI_BASE_URL has a name or a password in it, which is not sent; set OPENAI_API_KEY instead."
      })
    )
  }
  return Effect.succeed(url.replace(/[?#].*$/s, ""))
}

const built = (layer: Layer.Layer<StreamFn, Config.ConfigError>): Effect.Effect<
  Provider["stream"],
  NoModel,
  Scope.Scope
> =>
  Layer.build(layer.pipe(Resilience.retry())).pipe(
    Effect.map((context) => Context.get(context, StreamFn).stream),
    Effect.mapError(({ message }) => new NoModel({ reason: "InvalidEnvironment", message }))
  )

const offline: Provider = {
  model: offlineModel,
  because: "no provider in the environment",
  stream: offlineStream
}

const openAi = Effect.fnUntraced(function*(id: string, because: string) {
  const stream = yield* built(OpenAi.layerConfig())
  return { model: OpenAi.model(id), because, stream } satisfies Provider
})

const piAi = Effect.fnUntraced(function*(models: PiModels, model: Model, because: string) {
  const stream = yield* built(PiAi.layerModels(models))
  return { model, because, stream } satisfies Provider
})

/** The models of pi-ai for whose providers there is a key. */
const available = (models: PiModels) => Effect.orElseSucceed(Effect.tryPromise(() => models.getAvailable()), () => [])

const installPiAi = "install @earendil-works/pi-ai beside effect-pi for other providers"

/** The model that was asked for, or the one the environment has a key for, or the offline demo. */
export const selectProvider = Effect.fn("selectProvider")(function*(
  asked: string | undefined
): Effect.fn.Return<Provider, NoModel, Scope.Scope> {
  const key = yield* variable("OPENAI_API_KEY")
  const url = yield* variable("OPENAI_BASE_URL")
  const openAiBecause = url === undefined ? "OPENAI_API_KEY" : `OPENAI_BASE_URL ${yield* shownUrl(url)}`
  const hasOpenAi = key !== undefined || url !== undefined
  const wanted = asked ?? (yield* variable("EFFECT_PI_MODEL"))

  if (wanted === "offline" || wanted === "offline/rules") return { ...offline, because: "as was asked" }
  if (wanted === undefined) {
    if (hasOpenAi) return yield* openAi((yield* variable("OPENAI_MODEL")) ?? defaultOpenAiModel, openAiBecause)
    const models = yield* yield* PiAiModels
    const first = models === undefined ? undefined : preferredOf(yield* available(models))
    return models === undefined || first === undefined
      ? offline
      : yield* piAi(models, PiAi.model(first), `pi-ai found a key for ${first.provider}`)
  }

  const slash = wanted.indexOf("/")
  const [provider, id] = slash < 0 ? [undefined, wanted] : [wanted.slice(0, slash), wanted.slice(slash + 1)]
  if (provider === "openai" && hasOpenAi) return yield* openAi(id, openAiBecause)

  const models = yield* yield* PiAiModels
  if (provider !== undefined && models?.getProviders().some((each) => each.id === provider)) {
    const found = models.getModel(provider, id)
    if (found !== undefined) return yield* piAi(models, PiAi.model(found), "pi-ai")
  }
  // The ids of some servers have a slash in them.
  if (hasOpenAi) return yield* openAi(wanted, openAiBecause)
  if (models === undefined) {
    return yield* new NoModel({
      reason: "NotInstalled",
      message: `There is no provider for "${wanted}": set OPENAI_API_KEY or OPENAI_BASE_URL, or ${installPiAi}.`
    })
  }
  if (provider !== undefined) {
    const model = yield* PiAi.find(models, provider, id).pipe(
      Effect.mapError(({ message, reason }) => new NoModel({ reason, message }))
    )
    return yield* piAi(models, model, "pi-ai")
  }
  const known = (yield* available(models)).find((model) => model.id === id)
  if (known !== undefined) return yield* piAi(models, PiAi.model(known), `pi-ai found a key for ${known.provider}`)
  const withoutKey = models.getProviders().filter((each) => models.getModel(each.id, id) !== undefined)
  return yield* new NoModel({
    reason: "UnknownModel",
    message: withoutKey.length === 0
      ? `No provider has a model "${id}"; name it as PROVIDER/ID.`
      : `There is no key in the environment for "${id}"; ${
        withoutKey.slice(0, 5).map((each) => each.id).join(", ")
      } would have it.`
  })
})

/** The name of a model as it is shown and asked for. */
export const nameOf = ({ model }: Provider): string =>
  model.provider === undefined ? model.id : `${model.provider}/${model.id}`
