/** Instance management (decisions B "Instances"). */
import { type RequestHandler, Router } from 'express';
import {
  type ConnectionStateAnswer,
  type CreateInstanceAnswer,
  CreateInstanceRequest,
  type InstanceAnswer,
  settingsAnswer,
} from '../../contract/gateway-instances.ts';
import type { Instance, Instances } from '../instances.ts';
import type { MessageLog } from '../message-log.ts';
import type { Access } from '../middleware/access.ts';
import { badRequest, otherMethods } from '../middleware/error-answer.ts';
import { jsonBody } from '../middleware/json-body.ts';
import type { Sessions } from '../sessions.ts';

export interface InstanceServices {
  readonly access: Access;
  readonly instances: Instances;
  readonly sessions: Sessions;
  readonly log: MessageLog;
}

export function instanceRoutes(services: InstanceServices): Router {
  const { access } = services;
  const router = Router();
  router
    .route('/instance/create')
    .post(access.requireGatewayKey, jsonBody, create(services))
    .all(otherMethods('POST'));
  router
    .route('/instance/fetchInstances')
    .get(access.requireGatewayKey, list(services))
    .all(otherMethods('GET'));
  router
    .route('/instance/connectionState/:instance')
    .get(access.requireInstance, connectionState(services))
    .all(otherMethods('GET'));
  router
    .route('/instance/delete/:instance')
    .delete(access.requireGatewayKey, access.requireInstance, remove(services))
    .all(otherMethods('DELETE'));
  return router;
}

function create({ instances, sessions }: InstanceServices): RequestHandler {
  return async (request, response) => {
    const parsed = CreateInstanceRequest.safeParse(request.body);
    if (!parsed.success) {
      throw badRequest(parsed.error);
    }
    sessions.requireTransport(parsed.data.transport);
    const { instance, token } = await instances.create(parsed.data);
    const body: CreateInstanceAnswer = {
      instance: await describe(instance, sessions),
      hash: token,
      settings: settingsAnswer(instance.settings),
    };
    response.status(201).json(body);
  };
}

function list({ instances, sessions }: InstanceServices): RequestHandler {
  return async (_request, response) => {
    const all = await instances.list();
    response.json(await Promise.all(all.map((instance) => describe(instance, sessions))));
  };
}

function connectionState({ access, sessions }: InstanceServices): RequestHandler {
  return async (request, response) => {
    const instance = access.instanceOf(request);
    const body: ConnectionStateAnswer = {
      instance: { instanceName: instance.name, state: await sessions.state(instance) },
    };
    response.json(body);
  };
}

function remove({ access, instances, sessions, log }: InstanceServices): RequestHandler {
  return async (request, response) => {
    const instance = access.instanceOf(request);
    // The record goes last: a removal that broke off can be repeated.
    await sessions.remove(instance);
    await log.forget(instance.id);
    await instances.remove(instance);
    response.json({ status: 'SUCCESS', error: false, response: { message: 'Instance deleted' } });
  };
}

async function describe(instance: Instance, sessions: Sessions): Promise<InstanceAnswer> {
  return {
    instanceName: instance.name,
    instanceId: instance.id,
    transport: instance.transport,
    status: await sessions.state(instance),
  };
}
