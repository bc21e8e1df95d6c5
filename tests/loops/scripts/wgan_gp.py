"""A Wasserstein GAN with a gradient penalty: gradients of gradients, several steps of the critic."""

import numpy as np
import tensorflow as tf

import keras
from keras import layers

keras.utils.set_random_seed(13)
noise_dim = 8


def conv_block(x, filters, use_bn=False, use_dropout=False):
    x = layers.Conv2D(filters, (5, 5), strides=(2, 2), padding="same")(x)
    if use_bn:
        x = layers.BatchNormalization()(x)
    x = layers.LeakyReLU(0.2)(x)
    return layers.Dropout(0.3)(x) if use_dropout else x


def get_discriminator_model():
    img_input = layers.Input(shape=(14, 14, 1))
    x = layers.ZeroPadding2D((1, 1))(img_input)
    x = conv_block(x, 8)
    x = conv_block(x, 16, use_dropout=True)
    x = layers.Flatten()(x)
    x = layers.Dropout(0.2)(x)
    return keras.models.Model(img_input, layers.Dense(1)(x), name="discriminator")


def get_generator_model():
    noise = layers.Input(shape=(noise_dim,))
    x = layers.Dense(4 * 4 * 16, use_bias=False)(noise)
    x = layers.BatchNormalization()(x)
    x = layers.LeakyReLU(0.2)(x)
    x = layers.Reshape((4, 4, 16))(x)
    for filters, activation in ((8, layers.LeakyReLU(0.2)), (1, layers.Activation("tanh"))):
        x = layers.UpSampling2D((2, 2))(x)
        x = layers.Conv2D(filters, (3, 3), padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = activation(x)
    return keras.models.Model(noise, layers.Cropping2D((1, 1))(x), name="generator")


class WGAN(keras.Model):
    def __init__(self, discriminator, generator, latent_dim, discriminator_extra_steps=3, gp_weight=10.0):
        super().__init__()
        self.discriminator = discriminator
        self.generator = generator
        self.latent_dim = latent_dim
        self.d_steps = discriminator_extra_steps
        self.gp_weight = gp_weight

    def compile(self, d_optimizer, g_optimizer, d_loss_fn, g_loss_fn):
        super().compile()
        self.d_optimizer = d_optimizer
        self.g_optimizer = g_optimizer
        self.d_loss_fn = d_loss_fn
        self.g_loss_fn = g_loss_fn

    def gradient_penalty(self, batch_size, real_images, fake_images):
        alpha = tf.random.uniform([batch_size, 1, 1, 1], 0.0, 1.0)
        diff = fake_images - real_images
        interpolated = real_images + alpha * diff
        with tf.GradientTape() as gp_tape:
            gp_tape.watch(interpolated)
            pred = self.discriminator(interpolated, training=True)
        grads = gp_tape.gradient(pred, [interpolated])[0]
        norm = tf.sqrt(tf.reduce_sum(tf.square(grads), axis=[1, 2, 3]))
        return tf.reduce_mean((norm - 1.0) ** 2)

    def train_step(self, real_images):
        if isinstance(real_images, tuple):
            real_images = real_images[0]
        batch_size = tf.shape(real_images)[0]
        for i in range(self.d_steps):
            random_latent_vectors = tf.random.normal(shape=(batch_size, self.latent_dim))
            with tf.GradientTape() as tape:
                fake_images = self.generator(random_latent_vectors, training=True)
                fake_logits = self.discriminator(fake_images, training=True)
                real_logits = self.discriminator(real_images, training=True)
                d_cost = self.d_loss_fn(real_img=real_logits, fake_img=fake_logits)
                gp = self.gradient_penalty(batch_size, real_images, fake_images)
                d_loss = d_cost + gp * self.gp_weight
            d_gradient = tape.gradient(d_loss, self.discriminator.trainable_variables)
            self.d_optimizer.apply_gradients(zip(d_gradient, self.discriminator.trainable_variables))
        random_latent_vectors = tf.random.normal(shape=(batch_size, self.latent_dim))
        with tf.GradientTape() as tape:
            generated_images = self.generator(random_latent_vectors, training=True)
            gen_img_logits = self.discriminator(generated_images, training=True)
            g_loss = self.g_loss_fn(gen_img_logits)
        gen_gradient = tape.gradient(g_loss, self.generator.trainable_variables)
        self.g_optimizer.apply_gradients(zip(gen_gradient, self.generator.trainable_variables))
        return {"d_loss": d_loss, "g_loss": g_loss}


def discriminator_loss(real_img, fake_img):
    return tf.reduce_mean(fake_img) - tf.reduce_mean(real_img)


def generator_loss(fake_img):
    return -tf.reduce_mean(fake_img)


train_images = np.random.default_rng(0).random((32, 14, 14, 1)).astype("float32") * 2 - 1
wgan = WGAN(get_discriminator_model(), get_generator_model(), latent_dim=noise_dim)
wgan.compile(
    d_optimizer=keras.optimizers.Adam(learning_rate=0.0002, beta_1=0.5, beta_2=0.9),
    g_optimizer=keras.optimizers.Adam(learning_rate=0.0002, beta_1=0.5, beta_2=0.9),
    g_loss_fn=generator_loss,
    d_loss_fn=discriminator_loss,
)
before = [w.numpy() for w in (*wgan.generator.trainable_weights, *wgan.discriminator.trainable_weights)]
history = wgan.fit(train_images, batch_size=16, epochs=3, verbose=2)
after = [w.numpy() for w in (*wgan.generator.trainable_weights, *wgan.discriminator.trainable_weights)]
assert all(np.abs(a - b).max() > 0 for a, b in zip(after, before) if a.ndim > 1)
assert wgan.d_optimizer.iterations == 18 and wgan.g_optimizer.iterations == 6
assert np.isfinite([*history.history["d_loss"], *history.history["g_loss"]]).all()
assert history.history["d_loss"][-1] < history.history["d_loss"][0], history.history
print("ok", history.history)
