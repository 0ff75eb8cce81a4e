"""Agents, the hosts that run them, and every run."""

from agents.models.agent import Agent, ProviderPause
from agents.models.host import Host
from agents.models.prompt import Output, Prompt, PromptText
from agents.models.run import PullBundle, Run, RunQuerySet
from agents.models.token import TOKEN_PREFIX, Token, new_token, token_hash
from agents.models.trial import Trial
