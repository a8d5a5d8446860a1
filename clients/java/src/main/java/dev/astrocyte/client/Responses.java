package dev.astrocyte.client;

import io.grpc.Context;
import io.grpc.StatusRuntimeException;
import java.util.Iterator;

/**
 * The responses of a stream, as they come. The iterator throws an {@link AstrocyteException} if the call fails; closing
 * ends the call.
 */
public final class Responses<T> implements Iterable<T>, Iterator<T>, AutoCloseable {
  private final Iterator<T> responses;
  private final Context.CancellableContext context;

  Responses(Iterator<T> responses, Context.CancellableContext context) {
    this.responses = responses;
    this.context = context;
  }

  @Override
  public boolean hasNext() {
    try {
      return responses.hasNext();
    } catch (StatusRuntimeException e) {
      throw AstrocyteException.of(e);
    }
  }

  @Override
  public T next() {
    try {
      return responses.next();
    } catch (StatusRuntimeException e) {
      throw AstrocyteException.of(e);
    }
  }

  /** Returns itself; the responses can be read once. */
  @Override
  public Iterator<T> iterator() {
    return this;
  }

  @Override
  public void close() {
    context.cancel(null);
  }
}
